"""What rows call the devices of a daemon, whose own names for GPUs are those of the hardware: `cuda:0`, `cpu:0`, by kind and place among those of it."""


def labels(devices):
    """By each device's name, in the order given."""
    counts = {}
    named = {}
    for device in devices:
        index = counts[device.kind] = counts.get(device.kind, -1) + 1
        named[device.name] = f"{device.kind}:{index}"
    return named


def models(devices):
    """By label, as Result has them."""
    named = labels(devices)
    return {named[device.name]: device.model for device in devices}

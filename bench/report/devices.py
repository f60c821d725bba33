"""Labels of a daemon's devices in rows, `cuda:0` or `cpu:0`: kind and position within the kind. The daemon
names GPUs by their UUIDs."""


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

"""Changes of a new contract that break a client built from the old one."""

from google.protobuf import descriptor_pb2

from proto_check.contract import contract


def breaking_changes(
    old: descriptor_pb2.FileDescriptorSet, new: descriptor_pb2.FileDescriptorSet
) -> list[str]:
    """One line for each row of the old contract that is gone or says something else. Additions break no client."""
    new_rows = contract(new)
    problems = []
    for key, old_facts in contract(old).items():
        new_facts = new_rows.get(key)
        if new_facts is None:
            problems.append(f"{key}{_label(old_facts)}: removed")
            continue
        for fact, old_value in old_facts.items():
            if new_facts[fact] != old_value:
                problems.append(
                    f"{key}{_label(old_facts)}: {fact} was {old_value}, is {new_facts[fact]}"
                )
    return problems


def _label(facts) -> str:
    return f" ({facts['name']})" if "name" in facts else ""

"""The packed tests and their commands: ctest's own list, with the machine's paths replaced by placeholders."""

import dataclasses
import json
import pathlib
import subprocess

# Stand for the checkout, the build tree and the Python that runs the tests; each machine has its own.
SOURCE, BUILD, PYTHON = "@SOURCE@", "@BUILD@", "@PYTHON@"


@dataclasses.dataclass
class Test:
    name: str
    command: list[str]
    labels: list[str]
    timeout: float
    environment: dict[str, str]

    def located(self, source: pathlib.Path, build: pathlib.Path, python: str) -> "Test":
        """The same test with this machine's paths."""

        def here(text: str) -> str:
            return text.replace(BUILD, str(build)).replace(PYTHON, python).replace(SOURCE, str(source))

        return dataclasses.replace(
            self,
            command=[here(word) for word in self.command],
            environment={name: here(value) for name, value in self.environment.items()},
        )


def tests_of(build: pathlib.Path, source: pathlib.Path, labels: set[str]) -> list[Test]:
    """The tests of a build tree that carry one of the labels."""
    shown = subprocess.run(
        ["ctest", "--test-dir", str(build), "--show-only=json-v1"], check=True, capture_output=True, text=True
    )
    tests = [_test(entry, build, source) for entry in json.loads(shown.stdout)["tests"] if "command" in entry]
    return [test for test in tests if labels & set(test.labels)]


def _test(entry: dict, build: pathlib.Path, source: pathlib.Path) -> Test:
    properties = {item["name"]: item["value"] for item in entry.get("properties", [])}

    def anywhere(text: str) -> str:
        text = text.replace(f"{source}/.venv/bin/python", PYTHON)
        return text.replace(str(build), BUILD).replace(str(source), SOURCE)

    environment = dict(item.split("=", 1) for item in properties.get("ENVIRONMENT", []))
    return Test(
        name=entry["name"],
        command=[anywhere(word) for word in entry["command"]],
        labels=properties.get("LABELS", []),
        timeout=properties.get("TIMEOUT", 120),
        environment={name: anywhere(value) for name, value in environment.items()},
    )


def save(tests: list[Test], file: pathlib.Path) -> None:
    file.write_text(json.dumps([dataclasses.asdict(test) for test in tests], indent=1))


def load(file: pathlib.Path) -> list[Test]:
    return [Test(**test) for test in json.loads(file.read_text())]

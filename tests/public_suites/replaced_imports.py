"""Replaces imports of one library by modules of stride: aliases, placeholders of the library's internals, and files of
the suite's own copy where it has the test helpers.

Modules that a suite's rules call internal are importable, so that files with tests of public features load. A call
of them excludes the test, with the rule's reason."""

import importlib
import importlib.abc
import importlib.util
import os
import sys
import types

EXCLUDED = "excluded by a rule: "


def exclude(reason):
    import pytest

    pytest.skip(f"{EXCLUDED}{reason}", allow_module_level=True)


class Internal:
    """A name in an internal module. A call of it, and a block of it, excludes the test."""

    def __init__(self, path, reason, known):
        self.__dict__.update(_path=path, _reason=reason, _known=known)

    def __getattr__(self, name):
        if name == "__name__":  # to replace it by another object
            exclude(self._reason)
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        path = f"{self._path}.{name}"
        return self._known[path] if path in self._known else Internal(path, self._reason, self._known)

    def __call__(self, *arguments, **_):
        # A decorator of an internal module leaves what it decorates, whose own use of internals is noticed later.
        if len(arguments) == 1 and isinstance(arguments[0], type):
            return arguments[0]
        exclude(self._reason)

    def __iter__(self):
        exclude(self._reason)

    def __enter__(self):
        exclude(self._reason)

    def __exit__(self, *_):
        return None

    def __mro_entries__(self, _):
        return (InternalBase,)

    def __repr__(self):
        return f"<{self._path}>"


class InternalBase:
    """The base of a class that derives from a name of an internal module."""

    def __init__(self, *_, **__):
        exclude("derives from a class of the library's internals")


class InternalModule(types.ModuleType):
    def __init__(self, name, reason, known):
        super().__init__(name)
        self.__dict__.update(_reason=reason, _known=known, __path__=[])

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        path = f"{self.__name__}.{name}"
        return self._known[path] if path in self._known else Internal(path, self._reason, self._known)


class Alias(types.ModuleType):
    """A module of stride under its name in the library."""

    def __init__(self, name, target, rules):
        super().__init__(name, target.__doc__)
        self.__dict__.update(_target=target, _rules=rules, __path__=[])
        if hasattr(target, "__all__"):
            self.__dict__["__all__"] = list(target.__all__)

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            return getattr(self._target, name)
        path = f"{self.__name__}.{name}"
        if path in sys.modules:
            return sys.modules[path]
        if path in self._rules.KNOWN:
            return self._rules.KNOWN[path]
        if self._rules.from_suite(path) or self._rules.internal_module(path):
            return importlib.import_module(path)
        found = getattr(self._target, name)
        if isinstance(found, types.ModuleType) and found.__name__.startswith("stride."):
            return importlib.import_module(path)
        return found

    def __dir__(self):
        return dir(self._target)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """`rules` has ROOTS (the library's packages), KNOWN, `from_suite(name)`, `internal_module(name)` and
    `loaded(module)`, which may complete an alias."""

    def __init__(self, suite, rules):
        self.suite, self.rules = suite, rules

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] not in self.rules.ROOTS:
            return None
        if self.rules.from_suite(fullname):
            base = os.path.join(self.suite, *fullname.split("."))
            file = os.path.join(base, "__init__.py") if os.path.isdir(base) else base + ".py"
            if os.path.exists(file):
                return importlib.util.spec_from_file_location(
                    fullname, file, submodule_search_locations=[base] if os.path.isdir(base) else None
                )
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec):
        reason = self.rules.internal_module(spec.name)
        if reason is not None:
            return InternalModule(spec.name, reason, self.rules.KNOWN)
        parent, _, last = spec.name.rpartition(".")
        if not parent:
            return Alias(spec.name, importlib.import_module("stride." + spec.name), self.rules)
        above = sys.modules[parent]
        try:
            found = getattr(above._target, last)
        except AttributeError as error:
            try:
                found = importlib.import_module(f"{above._target.__name__}.{last}")
            except (AttributeError, ImportError):
                raise ModuleNotFoundError(str(error), name=spec.name) from None
        if isinstance(found, types.ModuleType):
            return Alias(spec.name, found, self.rules)
        raise ModuleNotFoundError(f"{spec.name} is no module", name=spec.name)

    def exec_module(self, module):
        self.rules.loaded(module)


def install(suite, rules):
    sys.meta_path.insert(0, Finder(suite, rules))

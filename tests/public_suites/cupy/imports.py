"""Imports of `cupy` and `cupyx` give `stride.cupy` and `stride.cupyx`; `cupy.testing` is the suite's own copy.

Modules of CuPy that rules.py calls internal are importable, so that a file whose other tests are a user's loads. What is
called in them excludes the test, with the rule's reason."""

import importlib
import importlib.abc
import importlib.util
import os
import sys
import types

import rules

ROOTS = ("cupy", "cupyx", "cupy_backends")


class Excluded(Exception):
    """Raised at the import of a file that an internal module is needed for."""


def exclude(reason):
    import pytest

    pytest.skip(f"{rules.EXCLUDED}{reason}", allow_module_level=True)


class Internal:
    """A name in an internal module. A call of it, and a block of it, excludes the test."""

    def __init__(self, path, reason):
        self.__dict__.update(_path=path, _reason=reason)

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Internal(f"{self._path}.{name}", self._reason)

    def __call__(self, *_, **__):
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
    """What a class that derives from a name of an internal module derives from."""

    def __init__(self, *_, **__):
        exclude("derives from a class of CuPy's internals")


class InternalModule(types.ModuleType):
    def __init__(self, name, reason):
        super().__init__(name)
        self.__dict__.update(_reason=reason, __path__=[])

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        known = rules.KNOWN.get(f"{self.__name__}.{name}")
        return Internal(f"{self.__name__}.{name}", self._reason) if known is None else known


class Alias(types.ModuleType):
    """A module of stride under its name in CuPy."""

    def __init__(self, name, target):
        super().__init__(name, target.__doc__)
        self.__dict__.update(_target=target, __path__=[])

    def __getattr__(self, name):
        path = f"{self.__name__}.{name}"
        if path in sys.modules:
            return sys.modules[path]
        if path == "cupy.testing" or rules.internal_module(path):
            return importlib.import_module(path)
        if path == "cupy.get_array_module":
            return self._array_module
        found = getattr(self._target, name)
        if isinstance(found, types.ModuleType) and found.__name__.startswith("stride."):
            return importlib.import_module(path)
        return found

    def _array_module(self, *values):
        import numpy

        found = self._target.get_array_module(*values)
        return numpy if found is numpy else self

    def __dir__(self):
        return dir(self._target)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, suite):
        self.suite = suite

    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] not in ROOTS:
            return None
        if fullname.startswith("cupy.testing") and rules.internal_module(fullname) is None:
            base = os.path.join(self.suite, *fullname.split("."))
            file = os.path.join(base, "__init__.py") if os.path.isdir(base) else base + ".py"
            if os.path.exists(file):
                return importlib.util.spec_from_file_location(
                    fullname, file, submodule_search_locations=[base] if os.path.isdir(base) else None
                )
        return importlib.util.spec_from_loader(fullname, self, is_package=True)

    def create_module(self, spec):
        reason = rules.internal_module(spec.name)
        if reason is not None:
            return InternalModule(spec.name, reason)
        parent, _, last = spec.name.rpartition(".")
        if not parent:
            return Alias(spec.name, importlib.import_module("stride." + spec.name))
        try:
            found = getattr(sys.modules[parent]._target, last)
        except AttributeError as error:
            raise ModuleNotFoundError(str(error), name=spec.name) from None
        if isinstance(found, types.ModuleType):
            return Alias(spec.name, found)
        raise ModuleNotFoundError(f"{spec.name} is no module", name=spec.name)

    def exec_module(self, module):
        if module.__name__ == "cupy.random":
            _random_states(module)


def _random_states(module):
    """`cupy.testing` resets CuPy's own table of states for each device."""
    generator = types.ModuleType("cupy.random._generator")
    generator._random_states = {}
    reset = module.__getattr__("reset_states")

    def reset_states():
        generator._random_states = {}
        reset()

    module.__dict__.update(_generator=generator, reset_states=reset_states)
    sys.modules["cupy.random._generator"] = generator


def install(suite):
    sys.meta_path.insert(0, Finder(suite))
    sys.path.insert(0, os.path.join(suite, "tests"))

"""Makes the stubs of the package, which type checkers and editors read: one `.pyi` for each module.

A stub has the module's functions and classes with the annotations of the source. A parameter without an annotation gets
the type that its name has throughout the package (`PARAMETERS`); a function without one its row of `RETURNS`. Names
that tables make at import come from the same tables. Nothing of the package is imported: wheels are built where NumPy
is not installed."""

import pathlib

from type_stubs.exported_names import exported
from type_stubs.module_stub import ModuleStub


def write(package: pathlib.Path) -> None:
    """Writes the stubs into the folder of a package."""
    for source in sorted(package.rglob("*.py")):
        if source.parent.name != "v1" and source.name != "_types.py":
            source.with_suffix(".pyi").write_text(ModuleStub(source, package).text())
    _write_aliases(package)


def _write_aliases(package: pathlib.Path) -> None:
    """stride.numba enters the modules of stride.cuda by its own names; type checkers look for files."""
    folder = package / "numba/cuda"
    folder.mkdir(exist_ok=True)
    for source in sorted((package / "cuda").glob("*.py")):
        if source.stem == "__init__" or not source.stem.startswith("_"):
            module = "stride.cuda" if source.stem == "__init__" else f"stride.cuda.{source.stem}"
            names = ", ".join(repr(one) for one in sorted(exported(package, f"cuda/{source.stem}")))
            text = f"# Made by type_stubs.\nfrom {module} import *\n__all__ = [{names}]\n"
            (folder / source.name).with_suffix(".pyi").write_text(text)

"""CuPy's parameter language: `raw T x, const S y, int32 n`."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from stride import _dtypes, _errors
from stride._array import _SCALARS, Array
from stride._texture import Texture

_DECLARATION = re.compile(r"(?:(raw|nonraw)\s+)?(?:const\s+)?([A-Za-z_]\w*)\s+([A-Za-z_]\w*)")


class Parameter(NamedTuple):
    """`dtype` is None of a placeholder such as T; `ctype` is what the text says. The operation indexes a raw
    one itself."""

    name: str
    ctype: str
    dtype: Optional[np.dtype]
    raw: bool
    is_const: bool


def _dtype_named(name: str) -> Optional[np.dtype]:
    try:
        return _dtypes.dtype_of(name) if name not in ("T",) and not (len(name) == 1 and name.isupper()) else None
    except (TypeError, _errors.StrideError):
        return None


def parse(text: str, is_const: bool) -> List[Parameter]:
    """The parameters of a declaration; ValueError where it is none."""
    made = []
    for part in filter(None, (one.strip() for one in text.split(","))):
        match = _DECLARATION.fullmatch(part)
        if match is None or match[2] in ("raw", "nonraw", "const"):
            raise ValueError(f"a parameter is written like 'T x' or 'raw float32 y', not {part!r}")
        raw, ctype, name = match.groups()
        if name == "i" or name.startswith("_"):
            raise ValueError(f"the name {name!r} is the kernel's own; give the parameter another")
        made.append(Parameter(name, ctype, _dtype_named(ctype), raw == "raw", is_const))
    if len({one.name for one in made}) != len(made):
        raise ValueError(f"a name is there twice: {text!r}")
    return made


def _number_type(values: Sequence) -> np.dtype:
    """The dtype of numbers alone, as NumPy has it."""
    return np.result_type(
        *(
            one.dtype if isinstance(one, np.generic) else np.min_scalar_type(1) if isinstance(one, bool) else type(one)
            for one in values
        )
    )


def infer(kernel: str, parameters: Sequence[Parameter], arguments: Sequence) -> Dict[str, np.dtype]:
    """The dtype of each placeholder: arrays decide, then NumPy's scalars, then numbers. `arguments` may be fewer than
    `parameters`."""
    types: Dict[str, np.dtype] = {}
    numbers: Dict[str, list] = {}
    for parameter, value in zip(parameters, arguments):
        if isinstance(value, Texture):
            continue
        if not isinstance(value, (Array, np.ndarray)):
            if not isinstance(value, _SCALARS):
                raise TypeError(f"{kernel}: {parameter.name} is an array or a number, not {type(value).__name__}")
            numbers.setdefault(parameter.ctype, []).append(value)
            continue
        known = (
            parameter.dtype
            if parameter.dtype is not None
            else types.setdefault(parameter.ctype, _dtypes.dtype_of(value.dtype))
        )
        if known != value.dtype:
            raise TypeError(
                f"Type is mismatched. {kernel}: {parameter.name} is {value.dtype}, where {parameter.ctype} is {known}"
            )
    for ctype, values in numbers.items():
        if ctype not in types and any(one.ctype == ctype and one.dtype is None for one in parameters):
            types[ctype] = _dtypes.dtype_of(_number_type(values))
    return types


def type_of(kernel: str, parameter: Parameter, types: Dict[str, np.dtype]) -> np.dtype:
    """The dtype of a parameter once placeholders are known."""
    if parameter.dtype is not None:
        return parameter.dtype
    if parameter.ctype not in types:
        raise ValueError(
            f"{kernel}: no argument says what {parameter.ctype} of {parameter.name} is; give the output array"
        )
    return types[parameter.ctype]

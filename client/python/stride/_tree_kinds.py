"""Kinds of containers in pytrees, their keys, and the registry of classes."""

import collections
import copy
import operator
from typing import Any, Callable, Hashable, Iterable, NamedTuple, Optional

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "keystr", "register_dataclass", "register_pytree_node",
    "register_pytree_node_class", "register_pytree_with_keys", "register_pytree_with_keys_class", "register_static",
    "SequenceKey",
]

# --- steps of a path ---


class DictKey(NamedTuple):
    """The step to the value of a key of a dict.

    Example
        >>> str(stride.tree_util.DictKey("a"))
        "['a']"
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(NamedTuple):
    """The step to an element of a tuple or list.

    Example
        >>> str(stride.tree_util.SequenceKey(0))
        '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class GetAttrKey(NamedTuple):
    """The step to an attribute.

    Example
        >>> str(stride.tree_util.GetAttrKey("x"))
        '.x'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """The step to a child of a registered class that names no keys.

    Example
        >>> str(stride.tree_util.FlattenedIndexKey(0))
        '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """The text of a path, such as `['a'][0].x`; `simple` gives the bare keys.

    Parameters
        keys: the steps of a path.
        simple: whether to give the bare keys.
        separator: what stands between two steps.
    Returns
        A str.
    Example
        >>> stride.tree_util.keystr((stride.tree_util.DictKey("a"), stride.tree_util.SequenceKey(0)))
        "['a'][0]"
    """
    return separator.join(str(one[0]) if simple and isinstance(one, tuple) else str(one) for one in keys)


# --- kinds of nodes ---


class _Kind:
    """How the nodes of a class are taken apart and put together. `flatten(tree)` gives children and static data,
    `unflatten(data, children)` a node, `keys(tree, data, count)` the steps to the children."""

    __slots__ = ("type", "flatten", "unflatten", "keys")

    def __init__(self, type_: Any, flatten: Callable, unflatten: Callable, keys: Callable):
        self.type, self.flatten, self.unflatten, self.keys = type_, flatten, unflatten, keys


def _sorted_keys(tree: dict) -> tuple:
    try:
        return tuple(sorted(tree))
    except TypeError as error:
        raise ValueError(
            f"the keys of a dict in a pytree cannot be sorted ({error}): {list(tree)!r}; use keys of one type"
        ) from None


def _flatten_dict(tree: dict) -> tuple:
    keys = _sorted_keys(tree)
    return [tree[key] for key in keys], keys


def _flatten_defaultdict(tree: collections.defaultdict) -> tuple:
    keys = _sorted_keys(tree)
    return [tree[key] for key in keys], (tree.default_factory, keys)


def _flat_keys(_: Any, __: Any, count: int) -> list:
    return [FlattenedIndexKey(i) for i in range(count)]


def _places(_: Any, __: Any, count: int) -> list:
    return [SequenceKey(i) for i in range(count)]


_tuple = _Kind(tuple, lambda tree: (tree, None), lambda _, parts: tuple(parts), _places)
_list = _Kind(list, lambda tree: (tree, None), lambda _, parts: list(parts), _places)
_dict = _Kind(
    dict, _flatten_dict, lambda keys, parts: dict(zip(keys, parts)), lambda _, keys, __: [DictKey(key) for key in keys]
)
_none = _Kind(type(None), lambda _: ((), None), lambda _, __: None, _flat_keys)
_namedtuple = _Kind(
    "namedtuple",
    lambda tree: (tree, type(tree)),
    lambda kind, parts: kind(*parts),
    lambda _, kind, __: [GetAttrKey(name) for name in kind._fields],
)
_kinds = {
    tuple: _tuple,
    list: _list,
    dict: _dict,
    type(None): _none,
    collections.OrderedDict: _Kind(
        collections.OrderedDict,
        lambda tree: (list(tree.values()), tuple(tree)),
        lambda keys, parts: collections.OrderedDict(zip(keys, parts)),
        lambda _, keys, __: [DictKey(key) for key in keys],
    ),
    collections.defaultdict: _Kind(
        collections.defaultdict,
        _flatten_defaultdict,
        lambda data, parts: collections.defaultdict(data[0], zip(data[1], parts)),
        lambda _, data, __: [DictKey(key) for key in data[1]],
    ),
}


# The static data of these has a hash; for registered classes it need only have `==`.
_HASHED = frozenset((*_kinds.values(), _namedtuple))


def _unchanging(data: Any) -> Any:
    """The data itself where it has a hash, else a copy."""
    try:
        hash(data)
    except TypeError:
        return copy.deepcopy(data)
    return data


def _kind_of(tree: Any) -> Optional[_Kind]:
    """None for a leaf."""
    found = _kinds.get(type(tree))
    if found is None and isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return _namedtuple
    return found


def _register(type_: type, kind: _Kind) -> None:
    if type_ in _kinds:
        raise ValueError(f"{type_!r} is registered as a pytree already")
    _kinds[type_] = kind


def register_pytree_node(
    nodetype: type, flatten_func: Callable, unflatten_func: Callable, flatten_with_keys_func: Optional[Callable] = None
) -> None:
    """Makes a class a kind of node.

    Parameters
        nodetype: the class; its subclasses stay leaves.
        flatten_func: takes a node, and returns its children and hashable static data.
        unflatten_func: takes static data and children, and returns a node.
        flatten_with_keys_func: as `flatten_func`, with (key, child) for each child.
    Returns
        None.
    Raises
        ValueError for a class that is registered already.
    Example
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> stride.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, parts: Pair(*parts))
        >>> stride.tree_util.tree_leaves([Pair(1, 2), 3])
        [1, 2, 3]
    """

    def keys(tree: Any, data: Any, count: int) -> list:
        if flatten_with_keys_func is None:
            return _flat_keys(tree, data, count)
        return [key for key, _ in flatten_with_keys_func(tree)[0]]

    _register(nodetype, _Kind(nodetype, flatten_func, unflatten_func, keys))


def register_pytree_with_keys(
    nodetype: type, flatten_with_keys: Callable, unflatten_func: Callable, flatten_func: Optional[Callable] = None
) -> None:
    """As `register_pytree_node`; `flatten_with_keys` returns (key, child) for each child, and static data.

    Parameters
        nodetype: the class; its subclasses stay leaves.
        flatten_with_keys: takes a node, and returns (key, child) for each child and hashable static data.
        unflatten_func: takes static data and children, and returns a node.
        flatten_func: takes a node, and returns its children and static data; None for those of `flatten_with_keys`.
    Returns
        None.
    Example
        >>> class Named:
        ...     def __init__(self, x):
        ...         self.x = x
        ...
        ...
        >>> key = stride.tree_util.GetAttrKey("x")
        >>> with_keys = lambda one: (((key, one.x),), None)
        >>> stride.tree_util.register_pytree_with_keys(Named, with_keys, lambda _, parts: Named(*parts))
        >>> [str(path[0]) for path, _ in stride.tree_util.tree_leaves_with_path(Named(1))]
        ['.x']
    """

    def flatten(tree: Any) -> tuple:
        children, data = flatten_with_keys(tree)
        return [child for _, child in children], data

    register_pytree_node(nodetype, flatten_func or flatten, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: Any) -> Any:
    """A decorator for a class with `tree_flatten(self)` and the class method `tree_unflatten(cls, data, children)`.

    Returns
        The class.
    Example
        >>> @stride.tree_util.register_pytree_node_class
        ... class Box:
        ...     def __init__(self, x):
        ...         self.x = x
        ...     def tree_flatten(self):
        ...         return (self.x,), None
        ...     @classmethod
        ...     def tree_unflatten(cls, data, children):
        ...         return cls(*children)
        ...
        >>> stride.tree_util.tree_leaves(Box(1))
        [1]
    """
    register_pytree_node(cls, operator.methodcaller("tree_flatten"), cls.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: Any) -> Any:
    """As `register_pytree_node_class`, for a class with `tree_flatten_with_keys(self)`.

    Returns
        The class.
    Example
        >>> @stride.tree_util.register_pytree_with_keys_class
        ... class Box:
        ...     def __init__(self, x):
        ...         self.x = x
        ...     def tree_flatten_with_keys(self):
        ...         return ((stride.tree_util.GetAttrKey("x"), self.x),), None
        ...     @classmethod
        ...     def tree_unflatten(cls, data, children):
        ...         return cls(*children)
        ...
        >>> stride.tree_util.tree_leaves(Box(1))
        [1]
    """
    flatten = operator.methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None
    register_pytree_with_keys(cls, operator.methodcaller("tree_flatten_with_keys"), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: Any,
    data_fields: Optional[Iterable[str]] = None,
    meta_fields: Optional[Iterable[str]] = None,
    drop_fields: Iterable[str] = (),
) -> Any:
    """Makes a dataclass a kind of node. `data_fields` are the children, `meta_fields` static; without them each field
    of the constructor is a child, unless its metadata has `static=True`.

    Parameters
        nodetype: the dataclass, or a class with these attributes.
        data_fields: the names of the children.
        meta_fields: the names of the static fields.
        drop_fields: names of fields that the constructor fills itself.
    Returns
        The class.
    Example
        >>> import dataclasses
        >>> @stride.tree_util.register_dataclass
        ... @dataclasses.dataclass
        ... class Point:
        ...     x: int
        ...     y: int
        ...
        >>> stride.tree_util.tree_map(lambda one: one + 1, Point(1, 2)).y
        3
    """
    import dataclasses

    if data_fields is None or meta_fields is None:
        if (data_fields is None) != (meta_fields is None):
            raise TypeError("data_fields and meta_fields are given together or not at all")
        if not dataclasses.is_dataclass(nodetype):
            raise TypeError(f"data_fields and meta_fields are needed, since {nodetype!r} is no dataclass")
        fields = [one for one in dataclasses.fields(nodetype) if one.init and one.name not in drop_fields]
        data_fields = [one.name for one in fields if not one.metadata.get("static", False)]
        meta_fields = [one.name for one in fields if one.metadata.get("static", False)]
    names, static = tuple(data_fields), tuple(meta_fields)
    if dataclasses.is_dataclass(nodetype):
        known = {one.name for one in dataclasses.fields(nodetype) if one.init} - {*drop_fields}
        if known != {*names, *static}:
            raise ValueError(
                f"data_fields and meta_fields of {nodetype!r} must name its fields {sorted(known)}, "
                f"not {sorted((*names, *static))}"
            )

    def unflatten(data: tuple, parts: Iterable) -> Any:
        return nodetype(**dict(zip(names, parts)), **dict(zip(static, data)))

    kind = _Kind(
        nodetype,
        lambda tree: ([getattr(tree, name) for name in names], tuple(getattr(tree, name) for name in static)),
        unflatten,
        lambda _, __, ___: [GetAttrKey(name) for name in names],
    )
    _register(nodetype, kind)
    return nodetype


def register_static(cls: Any) -> Any:
    """Makes a hashable class a node without leaves, compared by `==`.

    Returns
        The class.
    Example
        >>> @stride.tree_util.register_static
        ... class Setting(str):
        ...     pass
        ...
        >>> stride.tree_util.tree_leaves([Setting("a"), 1])
        [1]
    """
    _register(cls, _Kind(cls, lambda tree: ((), tree), lambda data, _: data, _flat_keys))
    return cls


for _name in __all__:
    globals()[_name].__module__ = "stride.tree_util"  # the public name, which pickles have

"""Pytrees: nested tuples, lists, dicts, None, named tuples and registered classes. Everything else is a leaf.

    leaves, structure = stride.tree_util.tree_flatten({"a": 1, "b": (2, None)})

The names and rules are JAX's: dicts are flattened in the order of their keys, None is a node without leaves. `jit`,
`vmap` and `stride.lax` use this module for arguments and results; `stride.tree` has the short names."""

import functools
from typing import Any, Callable, Iterable, List, Optional, Tuple

from stride._tree_kinds import (
    _HASHED, DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, _Kind, _dict, _kind_of, _kinds, _list, _namedtuple,
    _none, _register, _tuple, _unchanging, keystr, register_dataclass, register_pytree_node, register_pytree_node_class,
    register_pytree_with_keys, register_pytree_with_keys_class, register_static,
)

__all__ = [
    "all_leaves",
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "keystr",
    "Partial",
    "PyTreeDef",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "SequenceKey",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

IsLeaf = Optional[Callable[[Any], bool]]


# --- structures ---


class PyTreeDef:
    """The structure of a pytree: the same for trees that differ in their leaves alone. Hashable, also where the static
    data of a registered class is not: the hash has the data of Python's own containers alone.

    Parameters
        kind: how the root is taken apart; None for a leaf.
        data: its static data.
        parts: the structures of its children.
    Example
        >>> stride.tree_util.tree_structure([1, (2, None)])
        PyTreeDef([*, (*, None)])
    """

    __slots__ = ("_kind", "_data", "_parts", "_key", "_hashed", "_counts")

    def __init__(self, kind: Optional[_Kind], data: Any, parts: Tuple["PyTreeDef", ...]):
        self._kind, self._data, self._parts = kind, data, parts
        # Nested tuples, which compare and hash without a call for each node.
        self._key: tuple = (kind, data, tuple([one._key for one in parts]))
        # The part of the key that has a hash.
        self._hashed = self._key
        is_registered = kind is not None and kind not in _HASHED
        if is_registered or any([one._hashed is not one._key for one in parts]):
            self._hashed = (kind, None if is_registered else data, tuple([one._hashed for one in parts]))
        self._counts: Optional[Tuple[int, int]] = None  # leaves and nodes, after the first request

    def _counted(self) -> Tuple[int, int]:
        if self._counts is None:
            counts = [one._counted() for one in self._parts]
            leaves = 1 if self._kind is None else sum([one[0] for one in counts])
            self._counts = leaves, 1 + sum([one[1] for one in counts])
        return self._counts

    @property
    def num_leaves(self) -> int:
        """How many leaves there are.

        Example
            >>> stride.tree_util.tree_structure([1, (2, None)]).num_leaves
            2
        """
        return self._counted()[0]

    @property
    def num_nodes(self) -> int:
        """How many nodes there are, leaves among them.

        Example
            >>> stride.tree_util.tree_structure([1, (2, None)]).num_nodes
            5
        """
        return self._counted()[1]

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, PyTreeDef) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._hashed)

    def _snapshot(self) -> "PyTreeDef":
        """An equal structure whose static data does not change with objects of the program."""
        if self._hashed is self._key:
            return self
        data = self._data if self._kind is None or self._kind in _HASHED else _unchanging(self._data)
        return PyTreeDef(self._kind, data, tuple([one._snapshot() for one in self._parts]))

    def __repr__(self) -> str:
        return f"PyTreeDef({self._text()})"

    def _text(self) -> str:
        parts = [one._text() for one in self._parts]
        if self._kind is None:
            return "*"
        if self._kind is _none:
            return "None"
        if self._kind is _tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if self._kind is _list:
            return f"[{', '.join(parts)}]"
        if self._kind is _dict:
            return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(self._data, parts)) + "}"
        return f"CustomNode({self._name()}[{self._data!r}], [{', '.join(parts)}])"

    def _name(self) -> str:
        if self._kind is None:
            return "leaf"
        kind = self._data if self._kind is _namedtuple else self._kind.type
        return kind.__name__

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A tree of this structure.

        Parameters
            leaves: the leaves, in order.
        Returns
            A pytree.
        Example
            >>> stride.tree_util.tree_structure([1, (2,)]).unflatten([3, 4])
            [3, (4,)]
        """
        return tree_unflatten(self, leaves)

    def flatten_up_to(self, tree: Any) -> List[Any]:
        """The subtrees of `tree` at this structure's leaves.

        Parameters
            tree: a pytree that has this structure at its root.
        Returns
            A list of pytrees.
        Raises
            ValueError that names the path at which the tree differs.
        Example
            >>> stride.tree_util.tree_structure([1, 2]).flatten_up_to([3, (4, 5)])
            [3, (4, 5)]
        """
        found: List[Any] = []
        _up_to(self, tree, found, (), "the tree")
        return found

    def children(self) -> List["PyTreeDef"]:
        """The structures of the root's children.

        Returns
            A list of structures.
        Example
            >>> stride.tree_util.tree_structure([1, (2,)]).children()
            [PyTreeDef(*), PyTreeDef((*,))]
        """
        return list(self._parts)

    def compose(self, inner: "PyTreeDef") -> "PyTreeDef":
        """This structure with `inner` in place of each leaf.

        Parameters
            inner: a structure.
        Returns
            A structure.
        Example
            >>> stride.tree_util.tree_structure([1, 2]).compose(stride.tree_util.tree_structure((1,)))
            PyTreeDef([(*,), (*,)])
        """
        if self._kind is None:
            return inner
        return PyTreeDef(self._kind, self._data, tuple(one.compose(inner) for one in self._parts))

    def node_data(self) -> Optional[tuple]:
        """The class of the root and its static data; None for a leaf.

        Returns
            A tuple, or None.
        Example
            >>> stride.tree_util.tree_structure([1, 2]).node_data()
            (<class 'list'>, None)
        """
        return None if self._kind is None else (self._kind.type, self._data)


_LEAF = PyTreeDef(None, None, ())
_EMPTY_DICT = PyTreeDef(_dict, (), ())


def _flatten(tree: Any, leaves: list, is_leaf: IsLeaf) -> PyTreeDef:
    kind = _kinds.get(type(tree))
    if kind is None and isinstance(tree, tuple):
        kind = _kind_of(tree)
    if kind is None or is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return _LEAF
    if kind is _dict and not tree:
        return _EMPTY_DICT
    children, data = kind.flatten(tree)
    return PyTreeDef(kind, data, tuple([_flatten(one, leaves, is_leaf) for one in children]))


def _flatten_with_path(tree: Any, found: list, is_leaf: IsLeaf, path: tuple) -> PyTreeDef:
    kind = _kind_of(tree)
    if kind is None or is_leaf is not None and is_leaf(tree):
        found.append((path, tree))
        return _LEAF
    children, data = kind.flatten(tree)
    children = list(children)
    keys = kind.keys(tree, data, len(children))
    parts = [_flatten_with_path(one, found, is_leaf, (*path, key)) for key, one in zip(keys, children)]
    return PyTreeDef(kind, data, tuple(parts))


def _up_to(structure: PyTreeDef, tree: Any, found: list, path: tuple, what: str) -> None:
    """Appends what `tree` has at the leaves of `structure`; ValueError names the path where they differ."""
    if structure._kind is None:
        found.append(tree)
        return
    kind = _kind_of(tree)
    if kind is not structure._kind:
        raise ValueError(
            f"the pytrees have different structures: at {what}{keystr(path)} there is a {structure._name()} in one and "
            f"a {type(tree).__name__} in the other"
        )
    children, data = kind.flatten(tree)
    children = list(children)
    if data != structure._data:
        raise ValueError(
            f"the pytrees have different structures: at {what}{keystr(path)} there is a {structure._name()} with "
            f"{structure._data!r} in one and with {data!r} in the other"
        )
    if len(children) != len(structure._parts):
        raise ValueError(
            f"the pytrees have different structures: at {what}{keystr(path)} there is a {structure._name()} of "
            f"{len(structure._parts)} in one and of {len(children)} in the other"
        )
    for key, part, one in zip(kind.keys(tree, data, len(children)), structure._parts, children):
        _up_to(part, one, found, (*path, key), what)


def broadcast_prefix(prefix: Any, structure: PyTreeDef, name: str, is_leaf: IsLeaf = None) -> List[Any]:
    """A leaf of `prefix`, a tree that ends earlier than `structure`, for each leaf of the structure. `name` is what
    errors call the prefix. None is a leaf of the prefix."""
    found: List[Any] = []

    def walk(one: Any, part: PyTreeDef, path: tuple) -> None:
        kind = _kind_of(one)
        if one is None or kind is None or is_leaf is not None and is_leaf(one):
            found.extend([one] * part.num_leaves)
            return
        children, data = kind.flatten(one)
        children = list(children)
        is_same = kind is part._kind and len(children) == len(part._parts) and data == part._data
        if not is_same:
            raise ValueError(
                f"{name} must be a tree prefix of the corresponding value: at {name}{keystr(path)} it has "
                f"{tree_structure(one)}, the value has {part}"
            )
        for key, child, inner in zip(kind.keys(one, data, len(children)), children, part._parts):
            walk(child, inner, (*path, key))

    walk(prefix, structure, ())
    return found


# --- functions of trees ---


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> Tuple[List[Any], PyTreeDef]:
    """The leaves of a tree, in order, and its structure. `is_leaf(node)` makes a leaf of a node.

    Parameters
        tree: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        The list of leaves, and the structure.
    Example
        >>> stride.tree_util.tree_flatten({"b": 1, "a": [2, None]})
        ([2, 1], PyTreeDef({'a': [*, None], 'b': *}))
    """
    leaves: List[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with these leaves.

    Parameters
        treedef: a structure.
        leaves: the leaves, in order.
    Returns
        A pytree.
    Raises
        ValueError for another number of leaves.
    Example
        >>> stride.tree_util.tree_unflatten(stride.tree_util.tree_structure([0, (0,)]), "ab")
        ['a', ('b',)]
    """
    leaves = list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise ValueError(f"the structure {treedef} has {treedef.num_leaves} leaves; {len(leaves)} were given")
    return built(treedef, iter(leaves))


def built(treedef: PyTreeDef, leaves: Any) -> Any:
    """As `tree_unflatten`, of an iterator that has as many leaves."""
    kind = treedef._kind
    if kind is None:
        return next(leaves)
    return kind.unflatten(treedef._data, [built(one, leaves) for one in treedef._parts])


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> List[Any]:
    """The leaves of a tree, in order.

    Parameters
        tree: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A list of the leaves.
    Example
        >>> stride.tree_util.tree_leaves({"b": 1, "a": [2, None]})
        [2, 1]
    """
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree.

    Parameters
        tree: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A PyTreeDef.
    Example
        >>> stride.tree_util.tree_structure({"b": 1, "a": [2, None]})
        PyTreeDef({'a': [*, None], 'b': *})
    """
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> Tuple[List[Tuple[tuple, Any]], PyTreeDef]:
    """As `tree_flatten`, with (path, leaf) in place of each leaf; `keystr` makes text of a path.

    Parameters
        tree: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        The list of pairs, and the structure.
    Example
        >>> found, _ = stride.tree_util.tree_flatten_with_path({"a": [2, 3]})
        >>> [(stride.tree_util.keystr(path), leaf) for path, leaf in found]
        [("['a'][0]", 2), ("['a'][1]", 3)]
    """
    found: List[Tuple[tuple, Any]] = []
    structure = _flatten_with_path(tree, found, is_leaf, ())
    return found, structure


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> List[Tuple[tuple, Any]]:
    """(path, leaf) for each leaf of a tree.

    Parameters
        tree: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A list of pairs.
    Example
        >>> found = stride.tree_util.tree_leaves_with_path({"a": [2, 3]})
        >>> [(stride.tree_util.keystr(path), leaf) for path, leaf in found]
        [("['a'][0]", 2), ("['a'][1]", 3)]
    """
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map(f: Callable, tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the results of `f` for each leaf, and what the other trees have in its place.

    Parameters
        f: takes a leaf of each tree.
        tree: a pytree.
        rest: pytrees of the same structure.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A pytree of the first one's structure.
    Raises
        ValueError that names the path at which another tree differs.
    Example
        >>> stride.tree_util.tree_map(lambda a, b: a + b, {"x": 1, "y": (2,)}, {"x": 10, "y": (20,)})
        {'x': 11, 'y': (22,)}
    """
    leaves, structure = tree_flatten(tree, is_leaf)
    others = [structure.flatten_up_to(one) for one in rest]
    return built(structure, iter([f(*one) for one in zip(leaves, *others)]))


def tree_map_with_path(f: Callable, tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """As `tree_map`; `f` takes the path of each leaf first.

    Parameters
        f: takes a path, and a leaf of each tree.
        tree: a pytree.
        rest: pytrees of the same structure.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A pytree of the first one's structure.
    Example
        >>> stride.tree_util.tree_map_with_path(lambda path, one: stride.tree_util.keystr(path), {"a": [2, 3]})
        {'a': ["['a'][0]", "['a'][1]"]}
    """
    found, structure = tree_flatten_with_path(tree, is_leaf)
    others = [structure.flatten_up_to(one) for one in rest]
    return built(structure, iter([f(*one, *more) for one, *more in zip(found, *others)]))


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true; reads those that are arrays.

    Parameters
        tree: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A bool.
    Example
        >>> stride.tree_util.tree_all([True, (1, 0)])
        False
    """
    return all(map(bool, tree_leaves(tree, is_leaf)))


_NONE_GIVEN: Any = object()


def tree_reduce(function: Callable, tree: Any, initializer: Any = _NONE_GIVEN, is_leaf: IsLeaf = None) -> Any:
    """The leaves combined two by two, from the first on.

    Parameters
        function: takes what there is and a leaf.
        tree: a pytree.
        initializer: what it begins with; without it the first leaf.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        The last result.
    Example
        >>> stride.tree_util.tree_reduce(lambda a, b: a + b, [1, (2, 3)])
        6
    """
    leaves = tree_leaves(tree, is_leaf)
    return functools.reduce(function, leaves, *(() if initializer is _NONE_GIVEN else (initializer,)))


def tree_broadcast(prefix: Any, full: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of `full`'s structure, with the leaf of `prefix`, a tree that ends earlier, in each place below it.

    Parameters
        prefix: a pytree that ends earlier than `full`.
        full: a pytree.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A pytree.
    Raises
        ValueError that names the path at which the trees differ.
    Example
        >>> stride.tree_util.tree_broadcast([1, 2], [(0, 0), 0])
        [(1, 1), 2]
    """
    structure = tree_structure(full, is_leaf)
    return built(structure, iter(broadcast_prefix(prefix, structure, "the prefix", is_leaf)))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: Optional[PyTreeDef], pytree_to_transpose: Any) -> Any:
    """A tree of trees with outer and inner structure exchanged.

    Parameters
        outer_treedef: the outer structure.
        inner_treedef: the inner one; None for that of the first subtree.
        pytree_to_transpose: a pytree of the outer structure, with trees of the inner one for leaves.
    Returns
        A pytree of the inner structure, with trees of the outer one for leaves.
    Example
        >>> outer, inner = (stride.tree_util.tree_structure(one) for one in ([0, 0], {"a": 0}))
        >>> stride.tree_util.tree_transpose(outer, inner, [{"a": 1}, {"a": 2}])
        {'a': [1, 2]}
    """
    subtrees = outer_treedef.flatten_up_to(pytree_to_transpose)
    if inner_treedef is None:
        inner_treedef = tree_structure(subtrees[0])
    rows = [inner_treedef.flatten_up_to(one) for one in subtrees]
    columns = [[row[i] for row in rows] for i in range(inner_treedef.num_leaves)]
    return tree_unflatten(inner_treedef, [tree_unflatten(outer_treedef, one) for one in columns])


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every element is a leaf.

    Parameters
        iterable: pytrees.
        is_leaf: makes a leaf of the nodes for which it returns true.
    Returns
        A bool.
    Example
        >>> stride.tree_util.all_leaves([1, 2]), stride.tree_util.all_leaves([1, [2]])
        (True, False)
    """
    return all(tree_structure(one, is_leaf) is _LEAF for one in iterable)


def treedef_children(treedef: PyTreeDef) -> List[PyTreeDef]:
    """The structures of the root's children.

    Parameters
        treedef: a structure.
    Returns
        A list of structures.
    Example
        >>> stride.tree_util.treedef_children(stride.tree_util.tree_structure([1, (2,)]))
        [PyTreeDef(*), PyTreeDef((*,))]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is that of a leaf.

    Parameters
        treedef: a structure.
    Returns
        A bool.
    Example
        >>> stride.tree_util.treedef_is_leaf(stride.tree_util.tree_structure(1))
        True
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures.

    Parameters
        treedefs: structures.
    Returns
        A structure.
    Example
        >>> stride.tree_util.treedef_tuple([stride.tree_util.tree_structure(1), stride.tree_util.tree_structure([2])])
        PyTreeDef((*, [*]))
    """
    return PyTreeDef(_tuple, None, tuple(treedefs))


class Partial(functools.partial):
    """`functools.partial` as a node: its arguments are leaves, so that it may be an argument of a jitted function.

    Example
        >>> stride.tree_util.tree_leaves(stride.tree_util.Partial(max, 1, 2))
        [1, 2]
    """


_register(
    Partial,
    _Kind(
        Partial,
        lambda tree: ((tree.args, tree.keywords), tree.func),
        lambda function, parts: Partial(function, *parts[0], **parts[1]),
        lambda _, __, ___: [GetAttrKey("args"), GetAttrKey("keywords")],
    ),
)

"""From a dataclass to the description of a type that members in C++ and Python share."""

from __future__ import annotations

import dataclasses
import enum
import types
import typing
from typing import Annotated, Any

_NUMBERS = {
    "bool": "bool", "bool_": "bool", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "float32": "f32",
    "float64": "f64", "float": "f64", "int": "i64",
}
_DTYPES = {"bool": "?", "i8": "i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u8": "u1", "u16": "<u2",
           "u32": "<u4", "u64": "<u8", "f32": "<f4", "f64": "<f8"}


class Array:
    """Marks a field of numbers as an array: `Array[np.float32, 3]`, or with more dimensions.

    It stands for `Annotated[np.ndarray, Array(np.float32, 3)]`, and for C++'s `std::array`, in one
    piece of memory. Without a length, `Array[np.float32]` has any number of elements, as `std::vector`.
    """

    def __init__(self, element: Any, *shape: int):
        if any(not isinstance(length, int) or length < 1 for length in shape):
            raise TypeError(f"the lengths of an array are numbers from 1 on, not {shape}")
        self.element = element
        self.shape = shape

    def __class_getitem__(cls, arguments: Any) -> Any:
        import numpy
        arguments = arguments if isinstance(arguments, tuple) else (arguments,)
        return Annotated[numpy.ndarray, cls(*arguments)]


class Text:
    """Marks a field of text as one of at most so many bytes of UTF-8: `Text[16]`, a str in Python.

    It stands for `Annotated[str, Text(16)]`, and for C++'s `std::array<char, 16>`.
    """

    def __init__(self, bytes: int):
        if not isinstance(bytes, int) or bytes < 1:
            raise TypeError(f"the length of a text is a number of bytes from 1 on, not {bytes!r}")
        self.bytes = bytes

    def __class_getitem__(cls, bytes: int) -> Any:
        return Annotated[str, cls(bytes)]


class Key:
    """Marks a field of a topic's type as part of the key: `color: Key[Text[16]]`.

    It stands for `Annotated[..., Key]`, and for C++'s `TopicKey`: each value is an instance of its own.
    """

    def __class_getitem__(cls, field: Any) -> Any:
        return Annotated[field, cls]


def number_of(annotation: Any) -> str | None:
    """The library's name for a type of numbers, such as "i32" for `np.int32`; None: it is none."""
    if isinstance(annotation, type):
        if issubclass(annotation, enum.IntEnum):
            return "i32"
        module = annotation.__module__
        if module == "numpy" or annotation in (bool, int, float):
            return _NUMBERS.get(annotation.__name__)
    return None


def _refuse(path: str, why: str) -> typing.NoReturn:
    raise TypeError(f"field {path!r}: {why}")


def _spec_of(annotation: Any, path: str) -> tuple[Any, ...]:
    """The description of a field's type, for `dunlin._core.TopicType`."""
    number = number_of(annotation)
    if number is not None:
        return ("number", number, annotation if issubclass(annotation, enum.IntEnum) else None)
    if annotation is str:
        return ("string",)
    if annotation is bytes:
        return ("bytes",)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _marked(arguments, path)
    if origin is list and len(arguments) == 1:
        return ("sequence", _spec_of(arguments[0], path + "[]"))
    if origin in (typing.Union, types.UnionType):
        others = [argument for argument in arguments if argument is not type(None)]
        if len(others) == 1 and len(arguments) == 2:
            return ("optional", _spec_of(others[0], path + "?"))
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return struct_of(annotation, path)
    _refuse(path, f"a topic has no type for {annotation!r}: it takes int, float, bool, str, bytes, numpy's "
                  "scalars, IntEnum, dunlin.Array, dunlin.Text, list[...], ... | None, and dataclasses")


def _marked(arguments: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    for mark in arguments[1:]:
        if isinstance(mark, Text):
            return ("text", mark.bytes)
        if isinstance(mark, Array):
            return _array_of(mark, path)
    return _spec_of(arguments[0], path)


def _array_of(mark: Array, path: str) -> tuple[Any, ...]:
    number = number_of(mark.element)
    if number is not None:
        return ("numbers", number, mark.shape, _DTYPES[number])
    element = _spec_of(mark.element, path)
    if not mark.shape:
        return ("sequence", element)
    for length in reversed(mark.shape):
        element = ("array", length, element)
    return element


def fields_of(cls: type) -> list[tuple[str, Any, bool]]:
    """Name, annotation and whether it is a key, for each field of a dataclass."""
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise TypeError(f"expected a dataclass, not {cls!r}")
    hints = typing.get_type_hints(cls, include_extras=True)
    all_fields = []
    for field in dataclasses.fields(cls):
        if not field.init:
            _refuse(f"{cls.__name__}.{field.name}", "a field that is not an argument of the class's "
                                                    "constructor (init=False) cannot be shared")
        annotation = hints[field.name]
        is_key = typing.get_origin(annotation) is Annotated and Key in typing.get_args(annotation)[1:]
        all_fields.append((field.name, annotation, is_key))
    return all_fields


def struct_of(cls: type, path: str = "") -> tuple[Any, ...]:
    """The description of a dataclass; its name at other members is `dunlin_name`, or that of the class."""
    name = getattr(cls, "dunlin_name", cls.__name__)
    extensibility = getattr(cls, "dunlin_extensibility", "final")
    if extensibility not in ("final", "appendable"):
        raise ValueError(f"{name}: dunlin_extensibility is 'final' or 'appendable'")
    prefix = path + "." if path else name + "."
    members = [(field, _spec_of(annotation, prefix + field), is_key)
               for field, annotation, is_key in fields_of(cls)]
    return ("struct", name, extensibility == "appendable", members, cls)


def dtype_of(spec: tuple[Any, ...]) -> Any:
    """The numpy dtype with the memory of a plain type; None for another type."""
    import numpy
    kind = spec[0]
    if kind == "number":
        return numpy.dtype(_DTYPES[spec[1]])
    if kind == "text":
        return numpy.dtype(f"S{spec[1]}")
    if kind == "numbers" and spec[2]:
        return numpy.dtype((numpy.dtype(_DTYPES[spec[1]]), spec[2]))
    if kind == "array":
        element = dtype_of(spec[2])
        return None if element is None else numpy.dtype((element, (spec[1],)))
    if kind == "struct" and not spec[2]:
        members = [(name, dtype_of(member)) for name, member, _ in spec[3]]
        if any(member is None for _, member in members):
            return None
        return numpy.dtype(members, align=True)
    return None


def dtype_if_plain(spec: tuple[Any, ...]) -> Any:
    """As dtype_of(); None also if there is no numpy."""
    try:
        return dtype_of(spec)
    except ImportError:
        return None


def as_numbers(object: Any, dtype: str, shape: tuple[int, ...], name: str) -> Any:
    """The numbers of an object as an array of that dtype and shape; for `dunlin._core`."""
    import numpy
    if isinstance(object, numpy.ndarray):
        array = numpy.ascontiguousarray(object.astype(dtype, casting="same_kind", copy=False))
    else:
        array = numpy.array(object, dtype=dtype, order="C")
    if shape and array.shape != shape:
        raise ValueError(f"{name}: expected an array of shape {shape}, not {array.shape}")
    if not shape and array.ndim != 1:
        raise ValueError(f"{name}: expected an array of one dimension, not of {array.ndim}")
    return array


def empty_numbers(shape: tuple[int, ...], dtype: str) -> Any:
    """An array whose numbers `dunlin._core` writes."""
    import numpy
    return numpy.empty(shape, dtype)

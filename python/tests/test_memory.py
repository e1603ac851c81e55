"""Registered memory, and its way to numpy and torch and back."""

from __future__ import annotations

import array
import gc
import pickle

import numpy as np
import pytest

import dunlin


@pytest.fixture(scope="module")
def segments(node):
    return node.segments(pool_bytes=16 << 20)


def test_memory_is_an_array_of_zeros(node):
    memory = node.memory((3, 4), np.float32)
    assert memory.shape == (3, 4) and memory.dtype == "float32" and memory.nbytes == 48 and len(memory) == 3
    view = np.asarray(memory)
    assert view.shape == (3, 4) and view.dtype == np.float32 and not view.any() and view.flags.writeable
    view[1, 2] = 7
    assert np.asarray(memory)[1, 2] == 7
    assert repr(memory) == "<dunlin.Memory of 48 bytes, float32>"
    assert memoryview(memory).format == "f" and memoryview(memory).strides == (16, 4)


def test_dlpack_goes_out_and_in_without_a_copy(node):
    memory = node.memory(100, "int64")
    tensor = np.from_dlpack(memory)
    tensor[:] = np.arange(100)
    assert (np.asarray(memory) == np.arange(100)).all()
    assert tensor.ctypes.data == np.asarray(memory).ctypes.data
    assert memory.__dlpack_device__() == (1, 0)

    class Tensor:
        """As torch has them: no buffer, but DLPack."""

        def __init__(self, its):
            self.its = its

        def __dlpack__(self, **options):
            return self.its.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.its.__dlpack_device__()

    store = node.store("tensors", memory_bytes=4 << 20)
    store.put_from("tensor", Tensor(memory))
    tensor[:] = 0
    assert store.get_into("tensor", Tensor(memory)) == 800
    assert (np.asarray(memory) == np.arange(100)).all()


def test_torch_shares_the_memory(node):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    memory = node.memory((4, 4), torch.bfloat16)
    tensor = torch.from_dlpack(memory)
    tensor.fill_(2)
    assert tensor.dtype == torch.bfloat16 and (torch.from_dlpack(memory) == 2).all()


def test_tensors_of_torch_go_in_and_out(node, segments):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.arange(1000, dtype=torch.float32)
    store = node.store("torch", memory_bytes=4 << 20)
    store.put_from("tensor", tensor)
    into = torch.zeros(1000)
    assert store.get_into("tensor", into) == 4000 and (into == tensor).all()
    segment = segments.allocate(4000)
    segment.put(tensor)
    into.zero_()
    segment.get_into(into)
    assert (into == tensor).all()
    with pytest.raises((TypeError, BufferError)):
        segment.put(tensor[::2])  # its elements do not lie one after the other
    segment.release()


def test_arrays_of_jax_go_in_and_out(node, segments):
    jnp = pytest.importorskip("jax.numpy", reason="jax is not installed")
    memory = node.memory(1000, "float32")
    np.asarray(memory)[:] = np.arange(1000)
    array = jnp.from_dlpack(memory)
    assert array.dtype == jnp.float32 and float(array.sum()) == 499500
    segment = segments.allocate(4000)
    segment.put(array * 2)
    segment.get_into(memory)
    assert (np.asarray(memory) == 2 * np.arange(1000)).all()
    store = node.store("jax", memory_bytes=4 << 20)
    store.put_from("array", array * 3)
    # The array has no copy: it sees what the segment has put into the memory.
    assert np.frombuffer(store["array"], np.float32)[999] == 5994
    with pytest.raises((TypeError, BufferError)):
        segment.get_into(jnp.zeros(1000))  # jax's arrays cannot be changed
    segment.release()


def test_segments_use_the_memory_in_place(node, segments):
    memory = node.memory(1 << 16, "float64")
    values = np.asarray(memory)
    values[:] = np.random.default_rng(3).normal(size=values.size)
    expected = values.copy()
    segment = segments.allocate(memory.nbytes)
    segment.put(memory)
    values[:] = 0
    segment.get_into(memory)
    assert (values == expected).all()
    values[:] = 0
    assert memory._is_registered(memory) and memory._is_registered(values[1000:2000])
    assert memory._is_registered(np.asarray(node.memory(4))) and not memory._is_registered(expected)
    segment.get_into(values[1000:2000], offset=8000)  # a view of the memory is registered, too
    assert (values[1000:2000] == expected[1000:2000]).all() and not values[2000:].any()
    segment.release()


def test_views_keep_the_memory_when_the_node_has_ended(group):
    with dunlin.join(group, timeout=60, silence_timeout=0) as node:
        memory = node.memory((1000,), "int32")
        view, tensor, buffer = np.asarray(memory), np.from_dlpack(memory), memoryview(memory)
        view[:] = np.arange(1000)
    assert view[999] == tensor[999] == buffer[999] == 999
    view[0] = 5
    assert tensor[0] == 5 and not memory._is_registered(view)
    del memory, view, buffer
    gc.collect()
    assert tensor[1] == 1
    with pytest.raises(dunlin.Error, match="ended"):
        node.memory(4)


def test_memory_comes_and_goes(node):
    for _ in range(3000):  # more than a fabric has regions at a time
        node.memory(16, "uint8")


@pytest.mark.parametrize("dtype", [bool, int, float, np.uint16, np.dtype("float32"), "float16", np.bool_])
def test_memory_has_each_type(node, dtype):
    memory = node.memory(8, dtype)
    assert np.asarray(memory).dtype == np.dtype(dtype) == np.from_dlpack(memory).dtype


def test_what_memory_cannot_be_is_refused(node):
    with pytest.raises(ValueError, match="no elements of type 'complex128'"):
        node.memory(4, np.complex128)
    with pytest.raises(ValueError, match="no elements"):
        node.memory((4, 0))
    with pytest.raises(ValueError, match="more bytes"):
        node.memory((1 << 40, 1 << 40))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(node.memory(4))
    with pytest.raises((BufferError, ValueError)):
        node.segments().allocate(8, name="odd").put(np.asarray(node.memory(4))[::2])
    assert array.array("d", np.asarray(node.memory(2)))[1] == 0

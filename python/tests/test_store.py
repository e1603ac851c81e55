"""A store against a dict, and the memory that it takes values from and gives them to."""

from __future__ import annotations

import array
import itertools
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dunlin

_names = itertools.count()


@pytest.fixture
def store(node):
    return node.store(f"store-{next(_names)}", memory_bytes=4 << 20)


KEYS = st.sampled_from(["a", "b", "c", "d", "é", b"\x00\xff"])
VALUES = st.binary(max_size=300)
CALLS = st.lists(st.one_of(
    st.tuples(st.just("put"), KEYS, VALUES),
    st.tuples(st.just("insert"), KEYS, VALUES),
    st.tuples(st.just("replace"), KEYS, VALUES),
    st.tuples(st.just("erase"), KEYS),
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("update"), KEYS, VALUES),
    st.tuples(st.just("all"))))


def as_bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


@settings(max_examples=60, deadline=None)
@given(calls=CALLS)
def test_a_store_is_a_dict(node, calls):
    store, model = node.store("model"), {}
    for key in list(store):
        del store[key]
    for name, *arguments in calls:
        if name == "all":
            assert dict(store.items()) == model
            assert set(store) == set(model) and sorted(store.values()) == sorted(model.values())
            assert len(store) == len(model)
            continue
        key, value = arguments[0], arguments[-1]
        known = as_bytes(key)
        if name == "put":
            store[key] = model[known] = value
        elif name == "insert":
            assert store.insert(key, value) == (known not in model)
            model.setdefault(known, value)
        elif name == "replace":
            assert store.replace(key, value) == (known in model)
            if known in model:
                model[known] = value
        elif name == "erase":
            assert store.erase(key) == (model.pop(known, None) is not None)
        elif name == "update":
            new = store.update_value(key, lambda old: (old or b"") + value)
            model[known] = model.get(known, b"") + value
            assert new == model[known]
        assert store.get(key) == model.get(known)
        assert (key in store) == (known in model)


def test_absent_keys(store):
    with pytest.raises(KeyError, match="nothing"):
        store["nothing"]
    with pytest.raises(KeyError):
        del store["nothing"]
    with pytest.raises(KeyError):
        store.pop("nothing")
    assert store.pop("nothing", 7) == 7
    assert store.get("nothing", 5) == 5
    assert store.entry("nothing") is None
    assert store.get_into("nothing", bytearray(8)) is None
    assert store.get_many(["nothing", b"none"]) == [None, None]


def test_versions_decide_a_compare_and_set(store):
    first = store.put("key", b"1")
    assert store.compare_and_set("key", first + 100, b"2") is None
    second = store.compare_and_set("key", first, b"2")
    assert second > first and store.entry("key").version == second
    assert store.compare_and_set("new", 0, b"3") is not None
    assert store.compare_and_set("new", 0, b"4") is None


def test_keys_live_as_long_as_they_are_given(store):
    store.put("key", b"value", ttl=3600)
    assert 3500 < store.entry("key").ttl <= 3600
    assert store.expire("key", None)
    assert store.entry("key").ttl is None
    assert not store.expire("nothing", 1)
    with pytest.raises(ValueError, match="negative"):
        store.put("key", b"value", ttl=-1)


@pytest.mark.parametrize("value", [
    b"bytes", bytearray(b"bytearray"), memoryview(b"memoryview"), array.array("d", [1.5, 2.5]),
    np.arange(12, dtype=np.float32).reshape(3, 4), np.array(7, dtype=np.int8), np.zeros((0, 3))])
def test_values_come_from_any_buffer(store, value):
    store.put_from("key", value)
    assert store["key"] == bytes(memoryview(value).cast("B") if memoryview(value).nbytes else b"")


def test_values_go_into_any_writable_buffer(store):
    values = np.random.default_rng(1).normal(size=(40, 50))
    store.put_from("key", values)
    for buffer in (np.empty_like(values), bytearray(values.nbytes), array.array("d", [0.0] * values.size)):
        assert store.get_into("key", buffer) == values.nbytes
        assert bytes(buffer) == values.tobytes()
    short = bytearray(10)
    assert store.get_into("key", short) == values.nbytes
    assert short == values.tobytes()[:10]


def test_tensors_of_dlpack_are_buffers(store):
    class Tensor:
        """As torch has them: no buffer, but DLPack."""

        def __init__(self, its_array):
            self.array = its_array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    values = np.arange(100, dtype=np.int64)
    store.put_from("key", Tensor(values))
    got = np.zeros_like(values)
    assert store.get_into("key", Tensor(got)) == values.nbytes
    assert (got == values).all()


def test_what_is_no_memory_is_refused(store):
    with pytest.raises(TypeError, match="expected bytes, or a buffer"):
        store.put("key", 5)
    with pytest.raises(TypeError, match="expected bytes, or a buffer"):
        store.put("key", "text")
    with pytest.raises(TypeError, match="a key of str or bytes"):
        store.get(5)
    with pytest.raises(BufferError):
        store.get_into("key", b"constant")
    with pytest.raises((BufferError, ValueError)):
        store.put("key", np.arange(10)[::2])
    assert "key" not in store


def test_limits_are_errors(node):
    store = node.store("limits", memory_bytes=16 << 20)
    longest = bytes(1 << 20)
    store["longest"] = longest
    assert store["longest"] == longest
    with pytest.raises(dunlin.TooLongError) as refused:
        store.put("key", bytes((1 << 20) + 1))
    assert refused.value.status == "too_long" and isinstance(refused.value, ValueError)
    with pytest.raises(dunlin.TooLongError):
        store.put("k" * 256, b"")
    with pytest.raises(dunlin.NoRoomError):
        store.put_many((f"key {i}", longest) for i in range(17))


def test_many_keys_at_once(store):
    pairs = {f"key {i}": str(i).encode() for i in range(1000)}
    store.put_many(pairs)
    assert store.get_many(pairs) == list(pairs.values())
    assert dict(store.items()) == {key.encode(): value for key, value in pairs.items()}


def test_a_transaction_changes_keys_as_one(store):
    store.put_many({"alice": b"50", "bob": b"0"})

    def transfer(transaction):
        has, other = int(transaction.get("alice")), int(transaction.get("bob"))
        transaction.put("alice", str(has - 30).encode())
        transaction.put("bob", str(other + 30).encode())
        assert transaction.get("bob") == str(other + 30).encode()
        assert transaction.get("nobody") is None and transaction.get("nobody", b"0") == b"0"
        transaction.erase("old")
        return has - 30

    store["old"] = b"x"
    assert store.transact(transfer) == 20
    assert store.get_many(["alice", "bob", "old"]) == [b"20", b"30", None]


def test_a_transaction_that_fails_changes_nothing(store):
    store["key"] = b"old"

    def fails(transaction):
        transaction.put("key", b"new")
        raise ZeroDivisionError

    def cancels(transaction):
        transaction.put("key", b"new")
        transaction.cancel()

    def inserts(transaction):
        transaction.put("other", b"new")
        transaction.insert("key", b"new")

    with pytest.raises(ZeroDivisionError):
        store.transact(fails)
    with pytest.raises(dunlin.AbandonedError):
        store.transact(cancels)
    with pytest.raises(dunlin.ExistsError):
        store.transact(inserts)
    with pytest.raises(dunlin.TooLongError):
        store.transact(lambda transaction: transaction.put("k" * 256, b""))
    assert store["key"] == b"old" and "other" not in store


def test_a_conflict_calls_the_function_again(store):
    store["key"] = b"0"
    seen = []

    def add(transaction):
        seen.append(transaction.get("key"))
        if len(seen) <= 2:
            store["key"] = b"%d" % len(seen)  # as another member might
        transaction.put("key", seen[-1] + b"+")

    store.transact(add)
    assert seen == [b"0", b"1", b"2"] and store["key"] == b"2+"
    seen.clear()
    with pytest.raises(dunlin.ConflictError):
        store.transact(add, attempts=1)


def test_a_transaction_ends_with_its_function(store):
    kept = []
    store.transact(kept.append)
    with pytest.raises(dunlin.Error, match="this transaction has ended"):
        kept[0].get("key")


def test_threads_transact_at_once(store):
    store.put_many({"a": b"0", "b": b"0"})

    def move(transaction):
        a, b = int(transaction.get("a")), int(transaction.get("b"))
        transaction.put("a", b"%d" % (a + 1))
        transaction.put("b", b"%d" % (b - 1))

    threads = [threading.Thread(target=lambda: [store.transact(move) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.get_many(["a", "b"]) == [b"200", b"-200"]


def test_ctrl_c_ends_a_transaction(group, start):
    member = start("""
        store = node.store("alone", copies=1)

        def read(transaction):
            tell("waiting")
            for i in range(32):
                transaction.get(f"key {i}")  # waits for the member that never makes the store

        try:
            store.transact(read)
        except KeyboardInterrupt:
            tell("interrupted")
        sys.stdin.readline()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0):
        assert member.line() == "waiting"
        member.kill(signal.SIGINT)
        assert member.line() == "interrupted"
        member.tell()
        assert member.end() == 0

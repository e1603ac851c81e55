"""A node in Python: joining, leaving, signals, forks, and what cannot be done."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import pytest

import dunlin
from structs import Row


def test_a_node_tells_its_state(group):
    with dunlin.join(group) as node:
        assert node.name == "0" and node.rank == 0 and node.group == group
        assert node.view.number == 1 and node.view.members == ["0"]
        assert repr(node) == f"<dunlin.Node '0' of group '{group}': 1 members in view 1>"
        assert repr(node.view) == "<dunlin.View 1: 0>"
        assert not node.ended and node.why_ended == ""
    assert node.ended and node.why_ended != ""
    assert "ended" in repr(node)


def test_calls_after_the_end_say_so(group):
    with dunlin.join(group) as node:
        store = node.store()
    with pytest.raises(dunlin.EndedError, match="the node has ended"):
        store.get("key")
    with pytest.raises(dunlin.Error, match="the node has ended"):
        node.store("other")


def test_closing_twice_is_closing_once(group):
    node = dunlin.join(group)
    node.close()
    node.close()


def test_a_handle_keeps_its_node(group):
    store = dunlin.join(group).store()
    store["key"] = b"value"
    assert store["key"] == b"value"


def test_a_join_without_the_others_says_who_is_missing(group):
    with pytest.raises(dunlin.Error, match="for rank 1"):
        dunlin.join(group, members=2, timeout=0.1)


def test_wrong_options_are_refused(group):
    with pytest.raises(ValueError, match="adaptive"):
        dunlin.join(group, wait="sometimes")
    with pytest.raises(ValueError, match="negative"):
        dunlin.join(group, timeout=-1)
    with pytest.raises(dunlin.Error, match="group"):
        dunlin.join("a group of this name cannot be")


def test_a_python_without_the_gil_is_refused():
    program = "import sys; sys._is_gil_enabled = lambda: False; import dunlin"
    ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1 and "ImportError: dunlin is not safe without the GIL" in ended.stderr


def test_handles_are_not_pickled(node):
    handles = (node, node.store(), node.store().aio, node.table("pickled", Row), node.topic("pickled", Row))
    for handle in handles:
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(handle)


def test_a_join_is_logged(group, caplog):
    with caplog.at_level(logging.INFO, "dunlin"):
        dunlin.join(group).close()
    assert any("joined group" in record.message for record in caplog.records)


def test_processes_share_a_store(group, start):
    member = start("""
        store = node.store("blocks", copies=2)
        store["from child"] = b"1"
        tell("put")
        sys.stdin.readline()
        tell(store["from parent"].decode())
        node.close()
        """, group, founders=2)
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        store = node.store("blocks", copies=2)
        assert member.line() == "put"
        assert store["from child"] == b"1"
        store["from parent"] = b"2"
        member.tell()
        assert member.line() == "2"
        assert member.end() == 0


def test_a_killed_member_loses_no_key_that_has_two_copies(group, start):
    program = """
        store = node.store("blocks", copies=2)
        store["mine " + sys.argv[2]] = b"value"
        tell("put")
        sys.stdin.readline()
        """
    members = [start(program, group, str(i), founders=3) for i in range(2)]
    with dunlin.join(group, 3, timeout=60, silence_timeout=0) as node:
        store = node.store("blocks", copies=2)
        store.put_many({f"key {i}": str(i).encode() for i in range(200)})
        assert [member.line() for member in members] == ["put", "put"]
        members[0].kill()
        assert store.get_many([f"key {i}" for i in range(200)]) == [str(i).encode() for i in range(200)]
        assert store["mine 0"] == store["mine 1"] == b"value"


def test_ctrl_c_ends_a_join(group, start):
    member = start("""
        try:
            tell("joining")
            dunlin.join(sys.argv[1], 2, timeout=600)
        except KeyboardInterrupt:
            tell("interrupted")
        """, group)
    assert member.line() == "joining"
    member.kill(signal.SIGINT)
    assert member.line() == "interrupted"


def test_an_interrupted_join_leaves_no_member(group, start):
    member = start("""
        import logging
        class Tell(logging.Handler):
            def emit(self, record): tell("news")
        logging.getLogger("dunlin").setLevel(logging.INFO)
        logging.getLogger("dunlin").addHandler(Tell())
        try:
            dunlin.join(sys.argv[1], 2, timeout=600)
        except KeyboardInterrupt:
            logging.getLogger("dunlin").handlers.clear()
            tell("interrupted")
        sys.stdin.readline()
        with dunlin.join(sys.argv[1], 2, timeout=60, silence_timeout=0) as node:
            tell(len(node.view.members))
            sys.stdin.readline()
        """, group)
    assert member.line() == "news"  # the join is under way
    member.kill(signal.SIGINT)
    while (line := member.line()) == "news":
        pass
    assert line == "interrupted"
    # Alone, this process founds no group with what the interrupt has left there.
    with pytest.raises(dunlin.Error, match="for rank 1"):
        dunlin.join(group, 2, timeout=0.5)
    member.tell()
    with dunlin.join(group, 2, timeout=60, silence_timeout=0) as node:
        assert member.line() == "2" and len(node.view.members) == 2
        member.tell()
        assert member.end() == 0


def test_a_handler_of_the_news_ends_a_join(group, monkeypatch):
    class Stop(logging.Handler):
        def emit(self, record):
            raise KeyboardInterrupt

    log = logging.getLogger("dunlin")
    monkeypatch.setattr(log, "handlers", [Stop()])
    monkeypatch.setattr(log, "level", logging.INFO)
    log.manager._clear_cache()
    with pytest.raises(KeyboardInterrupt):
        dunlin.join(group, 2, timeout=60)
    monkeypatch.undo()
    log.manager._clear_cache()
    with pytest.raises(dunlin.Error, match="for rank 1"):
        dunlin.join(group, 2, timeout=0.5)


def test_the_child_of_a_fork_is_no_member(node):
    store = node.store()
    store["key"] = b"value"
    child = os.fork()
    if child == 0:
        try:
            store.get("key")
        except dunlin.EndedError as error:
            os._exit(7 if "child of the member's process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert store["key"] == b"value"


def _join_in_a_process(group: str, method: str) -> None:
    with dunlin.join(group, may_found=False, timeout=60) as node:
        node.store()["from " + method] = b"hello"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_of_multiprocessing_joins_by_itself(group, method):
    with dunlin.join(group, timeout=60, silence_timeout=0) as node:
        store = node.store(copies=1, homes=1)
        process = multiprocessing.get_context(method).Process(
            target=_join_in_a_process, args=(group, method))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert store["from " + method] == b"hello"


def test_many_threads_use_one_store(node):
    store = node.store("threads")

    def work(number: int) -> None:
        for i in range(200):
            store.put(f"{number}/{i}", b"x" * i)
            assert len(store[f"{number}/{i}"]) == i

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store) == 800

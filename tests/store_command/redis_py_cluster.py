"""What users of redis-py's cluster client call, against the servers at the ports given: PID PORT...

The first server has that process, which this program kills.
"""

import os
import signal
import sys

import redis
from redis.cluster import ClusterNode, RedisCluster

KEYS = 300


def check(is_right, what):
    if not is_right:
        sys.exit(f"wrong: {what}")


def connect(ports):
    return RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", port) for port in ports])


def ports_of(client):
    return sorted(node.port for node in client.get_primaries())


def connect_when_all_are_there(ports):
    """A server that has just begun may not know all others yet."""
    while True:
        client = connect(ports)
        if ports_of(client) == sorted(ports):
            return client
        client.close()


def use(client):
    for i in range(KEYS):
        check(client.set(f"key{i}", i), "set")
    check([client.get(f"key{i}") for i in range(KEYS)] == [b"%d" % i for i in range(KEYS)], "get")
    check(client.mset_nonatomic({"a": 1, "b": 2, "c": 3}), "mset_nonatomic")
    check(client.mget_nonatomic("a", "b", "none", "c") == [b"1", b"2", None, b"3"], "mget_nonatomic")
    check(client.mget("{tag}a", "{tag}b") == [None, None], "mget with a tag")
    check(client.delete("a", "b", "c") == 3, "delete")
    pipeline = client.pipeline()
    for i in range(KEYS):
        pipeline.incr(f"key{i}")
    check(pipeline.execute() == list(range(1, KEYS + 1)), "pipeline")
    with client.lock("{lock}", timeout=100) as lock:
        check(lock.owned(), "lock")
    check(client.eval("return redis.call('incrby', KEYS[1], 1)", 1, "key0") == 2, "eval")
    check(client.cluster_keyslot("{tag}a") == client.keyslot("{tag}a"), "cluster keyslot")
    check(client.cluster_info(target_nodes=RedisCluster.RANDOM)["cluster_state"] == "ok", "cluster info")
    check(len(client.cluster_nodes()) == len(ports_of(client)), "cluster nodes")
    check(len(client.cluster_shards()) == len(ports_of(client)), "cluster shards")


def sees_all_keys(client):
    """While the other servers agree on a death, some calls may fail."""
    try:
        return all(client.get(f"key{i}") is not None for i in range(KEYS))
    except (redis.RedisError, OSError):
        return False


def main():
    victim = int(sys.argv[1])
    ports = [int(port) for port in sys.argv[2:]]
    client = connect_when_all_are_there(ports)
    use(client)
    os.kill(victim, signal.SIGKILL)
    while not sees_all_keys(client):
        pass
    left = connect_when_all_are_there(ports[1:])
    use(left)
    client.nodes_manager.initialize()
    check(ports_of(client) == sorted(ports[1:]), "the servers that are left")
    print("all as expected")


main()

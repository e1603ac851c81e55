"""What users of redis-py call, against the server at the port given."""

import sys

import redis


def check(is_right, what):
    if not is_right:
        sys.exit(f"wrong: {what}")


def use(client):
    client.delete("k", "n", "h", "a", "b")
    check(client.ping(), "ping")
    check(client.set("k", "value", ex=100), "set")
    check(client.get("k") == b"value", "get")
    check(0 < client.ttl("k") <= 100, "ttl")
    check(client.set("k", "other", nx=True) is None, "set nx")
    check(client.set("k", "other", get=True) == b"value", "set get")
    check(client.get("none") is None, "get of no key")
    check(client.incr("n", 5) == 5, "incr")
    check(client.mset({"a": 1, "b": 2}), "mset")
    check(client.mget("a", "none", "b") == [b"1", None, b"2"], "mget")
    check(client.exists("a", "b", "none") == 2, "exists")
    check(client.hset("h", mapping={"x": "1", "y": "2"}) == 2, "hset")
    check(client.hgetall("h") == {b"x": b"1", b"y": b"2"}, "hgetall")
    check(sorted(client.scan_iter(count=2)) == [b"a", b"b", b"h", b"k", b"n"], "scan")
    check(client.dbsize() == 5, "dbsize")
    check(client.config_get("save") == {"save": ""} or client.config_get("save") == {b"save": b""},
          "config get")
    check(client.info()["role"] == "master", "info")
    check(client.expire("a", 100) and client.persist("a"), "expire, persist")
    with client.pipeline(transaction=False) as pipeline:
        for i in range(500):
            pipeline.set(f"p{i}", i)
            pipeline.get(f"p{i}")
        replies = pipeline.execute()
    check(replies[1::2] == [str(i).encode() for i in range(500)], "pipeline")
    check(client.delete(*[f"p{i}" for i in range(500)]) == 500, "delete")
    try:
        client.lpush("l", 1)
        sys.exit("wrong: lpush must fail")
    except redis.ResponseError as error:
        check("unknown command" in str(error), str(error))


for protocol in (2, 3):
    use(redis.Redis(port=int(sys.argv[1]), protocol=protocol))
use(redis.Redis(port=int(sys.argv[1])))
print("all as expected")

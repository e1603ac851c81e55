"""What users of redis-py call, against the server at the port given."""

import sys

import redis


def check(is_right, what):
    if not is_right:
        sys.exit(f"wrong: {what}")


def use(client):
    client.delete("k", "n", "h", "a", "b", "_indices")
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
    # As YCSB's binding: one sorted set has all keys.
    check(client.zadd("_indices", {"user3": 3, "user1": 1.5, "user2": 2}) == 3, "zadd")
    check(client.zadd("_indices", {"user2": 1}, gt=True, ch=True) == 0, "zadd gt ch")
    check(client.zrangebyscore("_indices", 1, "inf", start=0, num=2) == [b"user1", b"user2"],
          "zrangebyscore")
    check(client.zrangebyscore("_indices", "(1.5", 3, withscores=True)
          in ([(b"user2", 2.0), (b"user3", 3.0)], [[b"user2", 2.0], [b"user3", 3.0]]),
          "zrangebyscore withscores")
    check(client.zscore("_indices", "user1") == 1.5, "zscore")
    check(client.zincrby("_indices", 2, "user1") == 3.5, "zincrby")
    check(client.zrange("_indices", 0, -1) == [b"user2", b"user3", b"user1"], "zrange")
    check((client.zcard("_indices"), client.zcount("_indices", 2, "(3")) == (3, 1), "zcard, zcount")
    check(client.zrem("_indices", "user1", "none", "user2", "user3") == 2 + 1, "zrem")
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
    # A pipeline is a transaction unless told otherwise.
    check(client.pipeline().set("t", 1).incr("t").get("t").execute() == [True, 2, b"2"], "transaction")
    try:
        client.pipeline().set("t", 3).lpush("l", 1).execute()
        sys.exit("wrong: an unknown command in a transaction must fail")
    except redis.ResponseError as error:
        check("unknown command" in str(error), str(error))
    check(client.get("t") == b"2", "a transaction that was refused")
    check(client.transaction(lambda pipe: pipe.multi() or pipe.delete("t"), "t") == [1], "watch")
    with client.lock("lock", timeout=10) as lock:
        check(lock.extend(10) and lock.reacquire() and lock.owned(), "lock")
        check(client.lock("lock").acquire(blocking=False) is False, "a lock that another holds")
    check(client.exists("lock") == 0, "release")
    add = client.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
    check((add(keys=["s"], args=[5]), add(keys=["s"], args=[6])) == (5, 11), "register_script")
    check(client.delete("s") == 1, "delete")
    try:
        client.lpush("l", 1)
        sys.exit("wrong: lpush must fail")
    except redis.ResponseError as error:
        check("unknown command" in str(error), str(error))


for protocol in (2, 3):
    use(redis.Redis(port=int(sys.argv[1]), protocol=protocol))
use(redis.Redis(port=int(sys.argv[1])))
print("all as expected")

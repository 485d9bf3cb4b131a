#!/usr/bin/env python3
"""Makes the seed inputs of every fuzz target from the recordings of real nodes: OUT/<target>/<file>.

  seeds.py --vectors tests/vectors --out DIR
"""

import argparse
import json
import pathlib
import re
import shutil

SERIALIZERS = {"JSON": "json", "MsgPack": "msgpack"}
STRUCTS = {"REQ": "request", "RES": "response", "EVENT": "event"}
KINDS = ["EVENT", "REQ", "RES", "DISCOVER", "INFO", "DISCONNECT", "HEARTBEAT", "PING", "PONG", "GOSSIP_HELLO",
         "GOSSIP_REQ", "GOSSIP_RES"]  # In the order of PacketType.
REQUEST_ID = b"00000000-0000-0000-0000-000000000000"  # See packets.cpp.
ID = re.compile(rb"[0-9a-f]{8}-0000-4000-8000-[0-9a-f]{12}")

# Read by people and by fuzzers: a plain example of each thing that no recording has.
TREE = {"flag": True, "number": -5, "real": 1.5, "text": "hé", "bytes": {"type": "Buffer", "data": [1, 255]},
        "time": "2023-11-14T22:13:20.123Z", "any": {"a": [1, None]}, "leaves": [{"small": 1, "large": 2**63, "ratio": 0.5}],
        "flags": {"a": [True]}, "children": []}
CONFIG = {"nodeID": "a", "namespace": "dev", "transporter": "TCP", "registry": {"strategy": "Shard", "preferLocal": False,
          "strategyOptions": {"shardKey": "a.b"}}, "retryPolicy": {"retries": 3, "factor": 2.5}, "tcp": {"port": 4000,
          "urls": ["10.0.0.1:4000/a"]}, "heartbeatInterval": 5, "logLevel": "debug", "metadata": {"zone": 1}}
TOML = """nodeID = "a"
namespace = 'dev'
metadata = { zone = 1, at = 2023-11-14T22:13:20Z }
[registry]
strategy = "Shard"
preferLocal = false
[tcp]
port = 0x0fa0
urls = ["10.0.0.1:4000/a", "[::1]:4000/b"]
"""
ENVIRONMENT = """TCP_PORT=4000
WEFT_REGISTRY__PREFER_LOCAL=false
MOL_RETRY_POLICY__FACTOR=2.5
REQUEST_TIMEOUT=1e3
METADATA={"a":1}
LOGLEVEL=trace
"""
URLS = ["tcp://10.0.0.1:4000/a,[::1]:4001/b", "file://peers", '["10.0.0.1:4000/self"]', '{"a":"tcp://h:1"}']
MODULES = [b"\0" * 8 + b"g++ 12\nlibstdc++ cxx11\n0.1.0", b"\0" * 8 + b"-\n-\n-", b"\1\2\0\0\0\0\0\0x"]
GLOBS = ["a/b/c.so\n**/*.so", "a.service.so\n?.service*"]


def msgpack(value):
    """Enough of MessagePack for TREE."""
    if value is None:
        return b"\xc0"
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return bytes([value & 0xff]) if -32 <= value < 128 else b"\xcf" + value.to_bytes(8, "big")
    if isinstance(value, float):
        import struct
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"\xd9" + bytes([len(value.encode())]) + value.encode()
    if isinstance(value, list):
        return bytes([0x90 | len(value)]) + b"".join(map(msgpack, value))
    return bytes([0x80 | len(value)]) + b"".join(msgpack(k) + msgpack(v) for k, v in value.items())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vectors", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    if args.out.exists():
        shutil.rmtree(args.out)
    counts = {}

    def seed(target, data):
        folder = args.out / target
        folder.mkdir(parents=True, exist_ok=True)
        counts[target] = counts.get(target, 0) + 1
        (folder / f"seed-{counts[target]:03d}").write_bytes(data if isinstance(data, bytes) else data.encode())

    sessions = {"bus": [], "gossip": []}
    for entry in json.loads((args.vectors / "index.json").read_text()):
        data = (args.vectors / entry["file"]).read_bytes()
        form = SERIALIZERS.get(entry.get("serializer"))
        is_tcp = entry["file"].startswith("tcp-")
        if entry["file"].startswith("udp/"):
            seed("udp.datagram", data)
            continue
        if is_tcp:
            seed("tcp.frame", b"\x07" + data)
            data = data[6:]
        if form is None:
            continue
        kind = entry["packet"]
        if kind in KINDS:
            packet = ID.sub(REQUEST_ID, data, count=1) if kind == "RES" else data
            seed(f"node.{form}.{kind}", packet)
            if form == "json":
                row = bytes([KINDS.index(kind)]) + len(packet).to_bytes(2, "big") + packet
                sessions["gossip" if is_tcp else "bus"].append(row)
        if kind in STRUCTS:
            seed(f"{form}.{STRUCTS[kind]}", data)
        seed(f"{form}.tree", data)
        seed(f"{form}.walk", b"\x11" + data)
        if form == "json":
            seed("json.differential", data)
    for name, rows in sessions.items():
        for start in range(0, len(rows), 12):
            seed(f"session.{name}", b"\xff\x01\x00".join(rows[start:start + 12]))

    # The kinds nobody recorded in MessagePack.
    for kind in KINDS:
        if f"node.msgpack.{kind}" not in counts:
            seed(f"node.msgpack.{kind}", msgpack({"ver": "5", "sender": "peer"}))
    for value in json.loads((args.vectors / "values.json").read_text())["values"]:
        wire = value["wire"]
        if "text" in wire.get("JSON", {}):
            seed("json.tree", wire["JSON"]["text"])
            seed("json.differential", wire["JSON"]["text"])
        if "hex" in wire.get("MsgPack", {}):
            seed("msgpack.tree", bytes.fromhex(wire["MsgPack"]["hex"]))
    seed("json.struct", json.dumps(TREE))
    seed("json.struct", json.dumps(dict(TREE, children=[TREE])))
    seed("msgpack.struct", msgpack(TREE))
    matching = json.loads((args.vectors / "event-match.json").read_text())
    for row in matching["patterns"]:
        for text in row["matches"][:3] or matching["texts"][:1]:
            seed("pattern", f"{text}\n{row['pattern']}")
    for text in URLS:
        seed("tcp.urls", text)
        seed("tcp.urls_file", text.replace(",", "\n"))
    seed("config.json", json.dumps(CONFIG))
    seed("config.toml", TOML)
    seed("environment", ENVIRONMENT)
    for data in MODULES:
        seed("module", data)
    for text in GLOBS:
        seed("glob", text)


if __name__ == "__main__":
    main()

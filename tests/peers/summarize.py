#!/usr/bin/env python3
"""Tables from the JSON lines of peers.py: for each op, size and number of ranks
the strongest peer of each transport. Standard library only."""
import argparse
import collections
import json
import statistics

import ratios

p = argparse.ArgumentParser()
p.add_argument("files", nargs="+")
p.add_argument("--clean", type=float, default=0.3, help="drop cells during which others used more cores than this, "
               "where the same cell has a quieter measurement")
p.add_argument("--near", type=float, default=0.1, help="where there are such, use only cells measured while the cores' "
               "one-way latency was at most this, in us (2 ranks)")
p.add_argument("--near-low", type=float, default=0.035, help="below this the two cores are one core's two threads")
p.add_argument("--key", default="median_us", choices=["median_us", "min_us", "b2b_us"])
p.add_argument("--mode", default="best", choices=["best", "configs", "spread", "ratio"])
p.add_argument("--ours", default="collc", help="ratio mode: configurations whose name starts so are ours")
p.add_argument("--agg", default="min", choices=["min", "median"], help="over rounds: the VM has slow minutes, so the "
               "best round of each peer is the fairer comparison")
p.add_argument("--ops")
a = p.parse_args()

cells = collections.defaultdict(list)
limits = []
for f in a.files:
    for line in open(f):
        if not line.startswith("{"):
            continue
        d = json.loads(line)
        if d["peer"] == "limit":
            limits.append(d)
            continue
        if d.get("bad"):
            print("# wrong result:", line[:160])
            continue
        cells[(d["op"], d["ranks"], d["bytes"], d["transport"], d["config"])].append(d)


def value(ds):
    quiet = [d for d in ds if abs(d["other_cores"]) <= a.clean]
    near = [d for d in quiet if d["ranks"] > 2 or a.near_low <= d.get("pp_us", 1) <= a.near]
    quiet = near or quiet
    use = quiet or ds
    v = sorted(d[a.key] for d in use)
    return (v[0] if a.agg == "min" else statistics.median(v)), bool(quiet), use


def name(b):
    return "-" if b == 0 else f"{b >> 20} MiB" if b >= 1 << 20 else f"{b >> 10} KiB" if b >= 1 << 10 else f"{b} B"


def us(v):
    return f"{v:.2f}" if v < 10 else f"{v:.1f}" if v < 1000 else f"{v:.0f}"


ops = a.ops.split(",") if a.ops else "allreduce allgather reducescatter broadcast reduce gather scatter alltoall barrier".split()
ranks = sorted({k[1] for k in cells})
FACT = {"allreduce": lambda n: 2 * (n - 1) / n, "broadcast": lambda n: 1, "reduce": lambda n: 1, "barrier": lambda n: 0}
if a.mode == "best":
    for op in ops:
        print(f"\n### {op}\n")
        print("| ranks | size | best TCP | us | busbw GB/s | second TCP | best shm | us | busbw GB/s | second shm |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        for n in ranks:
            for b in sorted({k[2] for k in cells if k[0] == op and k[1] == n}):
                row = [str(n), name(b)]
                for tr in ("tcp", "shm"):
                    c = []
                    for k, ds in cells.items():
                        if k[:4] == (op, n, b, tr):
                            v, quiet, use = value(ds)
                            c.append((v, k[4], quiet, use[0]))
                    c.sort(key=lambda t: t[0])
                    if not c:
                        row += ["-", "-", "-", "-"]
                        continue
                    v, cfg, quiet, d = c[0]
                    f = FACT.get(op, lambda n: (n - 1) / n)(n)
                    row += [cfg + ("" if quiet else " (noisy)"), us(v), f"{d['actual_bytes'] / v / 1e3 * f:.3f}" if f and v else "-"]
                    # the next one of another peer
                    nxt = [t for t in c[1:] if t[3]["peer"] != d["peer"]]
                    row.append(f"{nxt[0][1]} {us(nxt[0][0])}" if nxt else "-")
                print("| " + " | ".join(row) + " |")
elif a.mode == "configs":
    for op in ops:
        for n in ranks:
            bs = sorted({k[2] for k in cells if k[0] == op and k[1] == n})
            if not bs:
                continue
            print(f"\n{op} ranks {n} ({a.key}): " + " | ".join(name(b) for b in bs))
            for cfg in sorted({(k[3], k[4]) for k in cells if k[0] == op and k[1] == n}):
                out = []
                for b in bs:
                    ds = cells.get((op, n, b) + cfg)
                    if ds:
                        v, quiet, _ = value(ds)
                        out.append(us(v) + ("" if quiet else "~"))
                    else:
                        out.append("-")
                print(f"  {cfg[0]} {cfg[1]:20s} " + " | ".join(f"{o:>9s}" for o in out))
elif a.mode == "ratio":
    kept = [d for ds in cells.values() for d in ds if d["op"] in ops]
    ratios.report(kept, limits, a.key, a.ours, name, us)
else:
    for k, ds in sorted(cells.items()):
        if len(ds) > 2:
            v = [d["median_us"] for d in ds]
            o = max(abs(d["other_cores"]) for d in ds)
            print(*k, "medians", " ".join(us(x) for x in v), f"spread {max(v) / min(v):.2f}x", f"mins {min(d['min_us'] for d in ds):.2f}-{max(d['min_us'] for d in ds):.2f}", f"others up to {o:.2f}")

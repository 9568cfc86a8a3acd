"""Our time over the fastest peer's, cell by cell, and the means of a class: what `summarize.py --mode ratio` prints.

A round's ratio is our median over that of the peer that was fastest in the round; a cell's is the median over rounds. On two
ranks only measurements count that were made while the cores were near, if there are any. A cell whose time is within 1.15 of what
its bytes need at the rates that `limits.c` found in the same file is **met**, and counts in the means of large cells as no more
than their mark.
"""
import collections
import math
import statistics

LARGE = 1 << 20
NEAR_US = 0.1
MARKS = {"allreduce": 0.75, "reducescatter": 0.75, "allgather": 0.9}
SLACK = 1.15


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def rates(limits):
    """Bytes per microsecond: the best that was found of what bounds large cells."""
    best = collections.defaultdict(float)
    for d in limits:
        rate = d.get("busbw_GBps") or 0.0
        key = (d["transport"], d["op"], d["ranks"], d["bytes"])
        best[key] = max(best[key], rate * 1000)
    both_ways = "stream both ways, per direction"
    return {
        "tcp": {size: 2 * rate for (transport, op, _, size), rate in best.items() if op == both_ways and transport == "tcp" and size >= LARGE},
        "ring": best[("shm", "copy in, copy out", 2, LARGE)],
        "memory": best[("memory", "memcpy", 2, 128 << 20)],
    }


def needs_us(op, n, size, transport, rate):
    """What the bytes of a cell need on two cores; none where that is not known. Messages go through the system, as fast as a
    stream of that size does, or through a ring; large buffers are read and written once in memory, a copied byte being one that is
    read and one that is written."""
    sent = {"allreduce": 2 * (n - 1) * size, "reducescatter": (n - 1) * size, "allgather": (n - 1) * size}.get(op)
    if sent is None or size < LARGE:
        return None
    if transport == "tcp":
        of_size = rate["tcp"].get(size, rate["tcp"].get(LARGE))
        return sent / of_size if of_size else None
    if size == LARGE:
        return sent / rate["ring"] if rate["ring"] else None
    touched = {"allreduce": 2 * n * size, "reducescatter": (n + 1) * size, "allgather": (n + 1) * size}[op]
    return touched / 2 / rate["memory"] if rate["memory"] else None


def cells_of(lines, key, ours):
    """For each (transport, ranks, op, bytes) the ratios of its rounds, and our and their times of the middle one."""
    rounds = collections.defaultdict(lambda: collections.defaultdict(list))
    for d in lines:
        rounds[(d["transport"], d["ranks"], d["op"], d["bytes"])][d["round"]].append(d)
    cells = {}
    for cell, of_round in rounds.items():
        found = []
        for ds in of_round.values():
            near = [d for d in ds if cell[1] > 2 or d.get("pp_us", 0) <= NEAR_US]
            mine = [d for d in near if d["config"].startswith(ours)]
            theirs = [d for d in near if not d["config"].startswith(ours)]
            if mine and theirs:
                best = min(theirs, key=lambda d: d[key])
                time = statistics.median(d[key] for d in mine)
                found.append((time / best[key], time, best[key], best["config"]))
        if found:
            found.sort()
            cells[cell] = (statistics.median(f[0] for f in found), len(found), found[len(found) // 2])
    return cells


def report(lines, limits, key, ours, name, us):
    cells = cells_of(lines, key, ours)
    rate = rates(limits)
    for (transport, n, op, size), (ratio, count, (_, mine, theirs, config)) in sorted(cells.items()):
        need = needs_us(op, n, size, transport, rate)
        met = need is not None and mine <= SLACK * need
        above = "above 1.3" if ratio > 1.3 and mine - theirs > 0.3 and not met else "met by its bytes" if met else ""
        print(f"{transport} {op:13s} {n} x {name(size):>7s}  ratio {ratio:5.2f}  {us(mine)} us, {config} {us(theirs)} us, "
              f"{count} rounds  {above}".rstrip())
    for transport in sorted({cell[0] for cell in cells}):
        summary(transport, {cell: found for cell, found in cells.items() if cell[0] == transport}, rate)


def summary(transport, cells, rate):
    ratios = [ratio for ratio, _, _ in cells.values()]
    above = sum(ratio > 1.3 and mine - theirs > 0.3 for ratio, _, (_, mine, theirs, _) in cells.values())
    print(f"\n{transport}: {len(ratios)} cells, geometric mean {mean(ratios):.3f}, above 1.3 and by 0.3 us: {above}")
    for n in sorted({cell[1] for cell in cells}):
        print(f"  {n} ranks: {mean([found[0] for cell, found in cells.items() if cell[1] == n]):.3f}")
    for op, mark in MARKS.items():
        counted, raw = [], []
        for (_, n, of, size), (ratio, _, (_, mine, _, _)) in cells.items():
            if of == op and size >= LARGE:
                need = needs_us(op, n, size, transport, rate)
                met = need is not None and mine <= SLACK * need
                raw.append(ratio)
                counted.append(min(ratio, mark) if met else ratio)
        if raw:
            met = sum(c != r for c, r in zip(counted, raw))
            print(f"  {op} of 1 MiB and more: {mean(raw):.3f}; {mean(counted):.3f} where the {met} met by their bytes count as {mark}")

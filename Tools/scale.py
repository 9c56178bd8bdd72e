#!/usr/bin/env python3
"""Where the first limit of a service is: a simulation of docs/scale.md.

Users change something at random times, with a peak hour above the day's average. Each change is a commit, which needs a core of a server and then one
of the database; each device also reconnects now and then. One minute of the peak hour is simulated, with service times that scatter like
measured ones (exponentially), and one queue for each kind of core.

  Tools/scale.py --users 1000000 --servers 4 --server-cores 4 --database-cores 16
"""
import argparse
import heapq
import random


class Cores:
    """Identical cores with one queue: a job takes the core that is free first."""

    def __init__(self, count):
        self.free, self.busy = [0.0] * count, 0.0
        self.count = count

    def run(self, arrival, seconds):
        start = max(arrival, heapq.heappop(self.free))
        heapq.heappush(self.free, start + seconds)
        self.busy += seconds
        return start + seconds


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--changes", type=float, default=20, help="commits of a user in a day")
    parser.add_argument("--devices", type=float, default=2, help="devices of a user that are connected at the peak")
    parser.add_argument("--reconnects", type=float, default=20, help="times a device connects in a day")
    parser.add_argument("--peak", type=float, default=3, help="the peak hour against the day's average")
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--server-cores", type=int, default=4, help="cores of each server")
    parser.add_argument("--database-cores", type=int, default=16)
    parser.add_argument("--server-ms", type=float, default=SERVER_MS, help="a server's processor time for a commit")
    parser.add_argument("--database-ms", type=float, default=DATABASE_MS, help="the database's processor time for a commit")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


# Measured by Scripts/bench --service, as docs/scale.md says.
SERVER_MS, DATABASE_MS = 2.3, 1.5
# A connection costs a login, a list of zones and a stream: about as much as a commit.
RECONNECT = 1.0


def arrivals(rate, seconds, dice):
    """The times of random events at an average rate."""
    moment = dice.expovariate(rate)
    while moment < seconds:
        yield moment
        moment += dice.expovariate(rate)


def simulate(options):
    dice = random.Random(options.seed)
    per_second = options.users * options.peak / 86_400
    rate = per_second * (options.changes + options.devices * options.reconnects * RECONNECT)
    servers, database = Cores(options.servers * options.server_cores), Cores(options.database_cores)
    waits = []
    for arrival in arrivals(rate, options.seconds, dice):
        served = servers.run(arrival, dice.expovariate(1_000 / options.server_ms))
        waits.append(database.run(served, dice.expovariate(1_000 / options.database_ms)) - arrival)
    return rate, servers, database, sorted(waits)


def main():
    options = arguments()
    rate, servers, database, waits = simulate(options)
    print(f"{options.users:,} users at their peak: {rate:,.0f} requests with a transaction in a second")
    for name, cores in (("servers", servers), ("database", database)):
        print(f"{name + ':':<10}{cores.count:>4} cores, {cores.busy / options.seconds / cores.count:>5.0%} busy")
    for share in (50, 99):
        print(f"p{share}: {waits[min(len(waits) * share // 100, len(waits) - 1)] * 1_000:,.1f} ms")


if __name__ == "__main__":
    main()

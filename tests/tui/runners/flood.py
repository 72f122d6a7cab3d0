"""A runner that sends 1,000 rounds a second, for three seconds, then waits."""

import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from scenarios.running.protocol import VERSION

start = json.loads(sys.stdin.readline())
send = lambda **content: print(json.dumps(content), flush=True)  # noqa: E731
send(type="hello", version=VERSION, directory=start["out"] + "/x-00000000/as-configured/seed-0001",
    scenario=start["scenario"], policy="as-configured", seed=1, hash8="00000000")  # fmt: skip
send(type="state", paused=False, speed=None)
ROW = "{n},{t},{name},digits,hqfa,training,0.500000,0.900000,5.0,10.000000,4.000000,4.000000,1,1,0,40,0.2,0.5,4.000000,4.000000,1.5,0.500000\n"
began = time.monotonic()
for n in range(1, 3001):
    rounds = "".join(ROW.format(n=n, t=float(n), name=name) for name in ("alpha", "beta", "gamma"))
    offers = f"{n},alpha,0,40,0.2,0.5,4.000000,4.000000,4.000000,served,0,0.0,1.5\n"
    events = f"{n},{n}.0,refresh,,,,\n{n},{n}.0,decision,alpha,,,4.000000\n"
    send(type="round", text={"rounds": rounds, "offers": offers, "events": events}, last=False)
    ahead = n / 1000 - (time.monotonic() - began)
    if ahead > 0:
        time.sleep(ahead)
sys.stdin.read()

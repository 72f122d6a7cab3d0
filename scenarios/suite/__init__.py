"""The frozen benchmark of markets: ``flmarket suite``.

from scenarios.suite.frozen import read
from scenarios.suite.playing import play
from scenarios.suite.scoring import standings

suite = read()
[line] = standings([play("hqfa", suite)], suite)
line.score()                    # 0 is random, 1 the privileged reference; with its interval

Only the files of ``version1`` count: ``read`` refuses them if a byte is not as it was frozen.
"""

"""Starts ranks as a launcher does, without the seconds that importing one takes: `start_ranks.py NPROC PORT SCRIPT [ARGUMENTS]`.

`{local_rank}` in an argument is each rank's own.
"""

import os
import subprocess
import sys
import time


def main(nproc: int, port: str, line: list[str]) -> int:
    """Start them, end all as soon as one fails, and return the code of the first that failed."""
    common = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(nproc), "LOCAL_WORLD_SIZE": str(nproc)}
    ranks = [
        subprocess.Popen(
            [sys.executable, *(part.replace("{local_rank}", str(rank)) for part in line)],
            env={**common, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in range(nproc)
    ]
    while None in [rank.poll() for rank in ranks] and not any(rank.returncode for rank in ranks):
        time.sleep(0.02)
    codes = [rank.poll() for rank in ranks]
    for rank in ranks:
        if rank.poll() is None:
            rank.terminate()
    for rank in ranks:
        rank.wait()
    failed = next((code for code in codes if code), 0)
    if failed:
        print(f"exitcode: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))

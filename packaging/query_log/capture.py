"""Captures the general query log that the ``replay`` workload replays, from the guest image's own MariaDB.

::

    unshare --mount --net --pid --fork --kill-child --mount-proc \
        python3 packaging/query_log/capture.py IMAGE/root.raw vmlab/workloads/query_log

The image's Apache, PHP, WordPress and MariaDB run behind chroot on a copy in memory, in namespaces that end with this
program. The fresh database is dumped, ``posts.sql`` fills it, ``general_log`` is switched on, and four visitors ask for
pages of the blog: its front page, single posts, older pages, categories, months, searches and the feed.
"""

import lzma
import os
import random
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PAGES = 600
VISITORS = 4
SEED = 4
HERE = Path(__file__).parent


def mounted(disk: str) -> Path:
    """The image's root, writable in memory."""
    folder = Path("/mnt")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
    for name in ("lower", "upper", "work", "root"):
        (folder / name).mkdir()
    subprocess.run(["mount", "-o", "loop,ro,noload", disk, folder / "lower"], check=True)
    layers = ",".join(f"{name}dir={folder / name}" for name in ("lower", "upper", "work"))
    root = folder / "root"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, root], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    subprocess.run(["mount", "--bind", "/dev", root / "dev"], check=True)
    for place in ("run", "tmp"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", root / place], check=True)
    return root


def wait_until(answers: list[str]) -> None:
    for _ in range(300):
        if subprocess.run(answers, capture_output=True).returncode == 0:
            return
        time.sleep(0.2)
    sys.exit(f"{answers[2]} does not answer")


def addresses() -> list[str]:
    """What the visitors ask for, in an order that follows from the seed."""
    draw = random.Random(SEED)
    kinds = {
        lambda: "/": 15,
        lambda: f"/?p={1001 + draw.randrange(2000)}": 50,
        lambda: f"/?paged={1 + draw.randrange(200)}": 12,
        lambda: f"/?cat={101 + draw.randrange(20)}": 8,
        lambda: f"/?m={2015 + draw.randrange(8)}{1 + draw.randrange(12):02d}": 7,
        lambda: f"/?s={draw.choice(['latency', 'snapshot', 'scheduler', 'Note+17'])}": 4,
        lambda: "/?feed=rss2": 4,
    }
    return [draw.choices(list(kinds), list(kinds.values()))[0]() for _ in range(PAGES)]


def visit(address: str) -> None:
    with urllib.request.urlopen(f"http://localhost{address}", timeout=120) as page:
        page.read()


def main(disk: str, out: Path) -> None:
    root = mounted(disk)
    inside = ["chroot", str(root)]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run([*inside, "install", "-d", "-o", "mysql", "-g", "mysql", "/run/mysqld"], check=True)
    subprocess.run([*inside, "mkdir", "/run/lock"], check=True)
    subprocess.Popen([*inside, "mariadbd", "--user=mysql", "--skip-networking"], stderr=subprocess.DEVNULL)
    wait_until([*inside, "mariadb-admin", "ping"])
    dump = subprocess.run([*inside, "mariadb-dump", "--skip-comments", "wordpress"], check=True, capture_output=True)
    posts = (HERE / "posts.sql").read_bytes()
    subprocess.run([*inside, "mariadb", "wordpress"], input=posts, check=True)
    subprocess.run([*inside, "apache2ctl", "start"], check=True)
    # The first visitor fills WordPress's own caches in the database, and is not part of the log.
    visit("/")
    statement = "SET GLOBAL general_log_file = '/tmp/general.log', GLOBAL general_log = 1"
    subprocess.run([*inside, "mariadb", "-e", statement], check=True)
    with ThreadPoolExecutor(VISITORS) as visitors:
        list(visitors.map(visit, addresses()))
    subprocess.run([*inside, "mariadb", "-e", "SET GLOBAL general_log = 0"], check=True)
    log = (root / "tmp/general.log").read_bytes()
    out.mkdir(exist_ok=True)
    (out / "general.log.xz").write_bytes(lzma.compress(log, preset=9))
    (out / "data.sql.xz").write_bytes(lzma.compress(dump.stdout + posts, preset=9))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    os._exit(0)

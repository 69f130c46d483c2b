"""power_loss.py: what a power loss leaves of a directory, by the account of power_loss_shim.cc.

    SHADOW/durable/INODE   what was synced of a file
           real/INODE      the file, by another name: its bytes as they were written
           names           what happened to the names, a line each; "sync": that is durable

What was not synced is lost in part, as disks do it: of the bytes any of the sectors, of the names
all from some moment on.
"""

import os
import shutil
import tempfile

SHIM = os.environ.get("SKEP_POWER_LOSS_SHIM", "")
SECTOR_BYTES = 512
BLOCK_BYTES = 1 << 16


def data_of(fd):
    """The parts of a file that are not holes: offset and end."""
    at = 0
    while True:
        try:
            begin = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:  # no more
            return
        at = os.lseek(fd, begin, os.SEEK_HOLE)
        yield begin, at


def blocks_of(fd):
    for begin, end in data_of(fd):
        for at in range(begin, end, BLOCK_BYTES):
            yield at, os.pread(fd, min(BLOCK_BYTES, end - at), at)


def copy(source, target):
    with open(source, "rb", 0) as old, open(target, "wb", 0) as new:
        new.truncate(os.fstat(old.fileno()).st_size)
        for at, block in blocks_of(old.fileno()):
            os.pwrite(new.fileno(), block, at)


def zero_padded(block, size):
    return block + bytes(size - len(block))


def slow_disk(directory, delay_us):
    """The environment of a process whose writes and syncs there may take so much longer."""
    return {"LD_PRELOAD": SHIM, "SKEP_POWER_DIRECTORY": directory,
            "SKEP_POWER_DELAY_US": str(delay_us)}


class Power:
    """`lies`: syncs of the "log", or of "names", say that they have synced, and have not."""

    def __init__(self, seed, lies=""):
        self._folder = tempfile.mkdtemp(prefix="skep-power-")
        self._seed = seed
        self._lies = lies
        self._losses = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self._folder)

    @property
    def _shadow(self):
        return f"{self._folder}/{self._losses}"

    def environment(self):
        return {"SKEP_POWER_SHADOW": self._shadow, "SKEP_POWER_LIES": self._lies,
                "SKEP_POWER_SEED": str(self._seed + self._losses)}

    def prepare(self, directory):
        """Makes all that exists durable, before the start of a process."""
        shutil.rmtree(self._shadow, ignore_errors=True)
        os.makedirs(f"{self._shadow}/durable")
        os.makedirs(f"{self._shadow}/real")
        os.makedirs(directory, exist_ok=True)
        with open(f"{self._shadow}/names", "w", encoding="ascii") as names:
            for name in sorted(os.listdir(directory)):
                path = f"{directory}/{name}"
                inode = os.stat(path).st_ino
                os.link(path, f"{self._shadow}/real/{inode}")
                copy(path, f"{self._shadow}/durable/{inode}")
                names.write(f"create {inode} {name}\n")
            names.write("sync\n")

    def lose(self, directory, random):
        """The directory as it is after the loss: a new one, beside the old one, which goes."""
        # Of what was not synced.
        share = 0 if self._lies else random.choice((0, 0.1, 0.5, 0.9, 1))
        names = self._surviving_names(share, random)
        self._losses += 1
        base, _, _ = directory.partition(".")
        after = f"{base}.{self._losses}"
        os.makedirs(after)
        before = f"{self._folder}/{self._losses - 1}"
        for name, inode in names.items():
            self._recover(before, inode, f"{after}/{name}", share, random)
        shutil.rmtree(directory)
        shutil.rmtree(before)
        return after

    def _surviving_names(self, share, random):
        with open(f"{self._shadow}/names", encoding="ascii") as file:
            lines = [line.split() for line in file]
        synced = max((i for i, words in enumerate(lines) if words == ["sync"]), default=-1) + 1
        more = len(lines) - synced
        last = synced + (more if share == 1 else random.randint(0, more) if share else 0)
        names = {}
        for words in lines[:last]:
            if words[0] == "create":
                names[words[2]] = words[1]
            elif words[0] == "rename":
                names[words[2]] = names.pop(words[1])
            elif words[0] == "remove":
                del names[words[1]]
        return names

    @staticmethod
    def _recover(shadow, inode, path, share, random):
        durable = f"{shadow}/durable/{inode}"
        if os.path.exists(durable):
            copy(durable, path)
        else:
            open(path, "wb").close()
        with open(f"{shadow}/real/{inode}", "rb", 0) as real, open(path, "r+b", 0) as file:
            sizes = sorted((os.fstat(file.fileno()).st_size, os.fstat(real.fileno()).st_size))
            for at, written in blocks_of(real.fileno()):
                kept = zero_padded(os.pread(file.fileno(), len(written), at), len(written))
                if kept == written:
                    continue
                for begin in range(0, len(written), SECTOR_BYTES):
                    end = begin + SECTOR_BYTES
                    if written[begin:end] != kept[begin:end] and random.random() < share:
                        os.pwrite(file.fileno(), written[begin:end], at + begin)
            if share == 1:
                file.truncate(os.fstat(real.fileno()).st_size)
            elif share:
                file.truncate(random.choice((sizes[0], sizes[1], random.randint(*sizes))))

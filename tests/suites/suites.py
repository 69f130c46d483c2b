#!/usr/bin/env python3
"""suites.py BIN: runs the test suites of Redis's clients, as Debian's packages have them, against
the skep-server in BIN and against Debian's Redis, and compares which tests fail. Fails if one fails
at Skep alone that is not in KNOWN, or if one in KNOWN does not fail any more.

The suites are copied into a temporary folder; nothing of them is in this repository. Servers listen
on 127.0.0.1, on ports that the suites choose. Skep has one worker: some tests send a command over
one connection, do not wait for its answer, and take for granted that what they send over another
one comes after it."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

GO_SOURCES = "/usr/share/gocode"
LUA_TESTS = "/usr/share/doc/lua-redis-dev/test_client.lua"
HERE = os.path.dirname(os.path.abspath(__file__))
SUITE_SECONDS = 300
LUA_PORT = 6382
REDIGO_PORT = 16379  # the suite's own default

# What fails at Skep and not at Redis, and why it is to be so.
KNOWN = {
    "go-redis": {
        "Commands Eval [It] returns keys and values": "there are no scripts",
        "Commands debugging [It] should DebugObject": "the length is that of the bytes kept here",
        "Commands keys [It] should Migrate": "there is no MIGRATE",
        "Commands keys [It] should Move": "nothing happens in two databases at one instant",
        "Commands keys [It] should Object": "the times of accesses are not kept (OBJECT IDLETIME)",
        "Commands server [It] should SlaveOf": "there are no replicas",
        "Commands server [It] should Wait": "WAIT answers at once, as no replica will come",
    },
    "redigo": {
        "TestScript": "there are no scripts",
        "Example_zpop": "there are no scripts",
    },
    "redis-lua": {
        "Redis commands / Commands operating on the key space / MOVE (client:move)":
            "nothing happens in two databases at one instant",
    },
}


def binaries(bin_folder):
    """The two servers by name: the program, and the options that a suite does not know of."""
    redis = shutil.which("redis-server") or shutil.which("redis-check-rdb")
    if redis is None:
        sys.exit("suites: redis-server is not installed")
    skep = os.path.join(os.path.abspath(bin_folder), "skep-server")
    options = ["--enable-debug-command", "yes"]
    return {"redis": [redis, *options], "skep": [skep, "--workers", "1", *options]}


def write_starter(path, server, before):
    """A program that becomes the server, as a suite starts `redis-server`. Debian's Redis is a
    server by that name alone. `before`: what the program does first."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/bash\n{before}\nexec -a redis-server {" ".join(server)} "$@"\n')
    os.chmod(path, 0o755)


def await_port(port, process):
    """Waits until the server answers. It must be ours that answers, and no other that was there."""
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.1)
    sys.exit(f"suites: no server on port {port}")


def expect_free(port):
    with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        sys.exit(f"suites: something listens on port {port} already")


def run(command, **options):
    """What the command printed; a suite that does not end in time has failed."""
    # A group of its own: a suite that panics leaves its servers.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True, **options)
    try:
        return process.communicate(timeout=SUITE_SECONDS)[0]
    finally:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass


def build_go(folder, package, name):
    """Compiles the tests of a package whose copy lies in the folder."""
    program = os.path.join(folder, name)
    environment = dict(os.environ, GO111MODULE="off", GOPATH=f"{folder}:{GO_SOURCES}",
                       GOCACHE=os.path.join(folder, "cache"), GOFLAGS="")
    subprocess.run(["go", "test", "-c", "-o", program, "."], check=True, env=environment,
                   cwd=os.path.join(folder, "src", package))
    return program


def copy_go(folder, package):
    copy = os.path.join(folder, "src", package)
    shutil.copytree(os.path.join(GO_SOURCES, "src", package), copy)
    return copy


class GoRedis:
    """gopkg.in/redis.v5: commands, pipelines, transactions, messages, pools of connections. Its
    tests of clusters, rings and sentinels are left out, as Skep is none of these."""

    def __init__(self, folder):
        package = "gopkg.in/redis.v5"
        self.copy = copy_go(folder, package)
        for left_out in ("cluster", "sentinel", "ring", "race"):
            os.remove(os.path.join(self.copy, f"{left_out}_test.go"))
        path = os.path.join(self.copy, "main_test.go")
        with open(path, encoding="utf-8") as file:
            main = file.read()
        # Debian has the suite's entry as a comment; the servers that are started are one.
        begin, end = main.index("var cluster ="), main.index("//----")
        main = main[:begin] + """
var _ = BeforeSuite(func() {
	var err error
	redisMain, err = startRedis(redisPort)
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	Expect(redisMain.Close()).NotTo(HaveOccurred())
})

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "gopkg.in/redis.v5")
}

""" + main[end:]
        with open(path, "w", encoding="utf-8") as file:
            file.write(main)
        self.starter = os.path.join(self.copy, "testdata", "redis", "src", "redis-server")
        os.makedirs(os.path.dirname(self.starter))
        self.program = build_go(folder, package, "go-redis")

    def failures(self, server):
        # The first argument is a file that configures Redis.
        write_starter(self.starter, [*server, "--bind", "127.0.0.1"], before="shift")
        # The spec that is skipped closes its client while that waits for PUBLISH's answer: now and
        # then the next spec fails for it, at Redis, too.
        out = run([self.program, "-test.run", "TestSuite", "-ginkgo.noColor", "-ginkgo.seed", "1",
                   "-ginkgo.skip", "should ReceiveMessage without a subscription"], cwd=self.copy)
        counts = re.search(r"(\d+) Passed \| (\d+) Failed", out)
        return counts and int(counts.group(1)), set(
            re.findall(r"^\[Fail\] (.*?)\s*$", out, re.MULTILINE)), out


class Redigo:
    """github.com/gomodule/redigo: connections, pools, pipelines, messages, replies."""

    def __init__(self, folder):
        package = "github.com/gomodule/redigo"
        copy_go(folder, package)
        self.program = build_go(folder, package + "/redis", "redigo")
        self.starter = os.path.join(folder, "redigo-server")

    def failures(self, server):
        # The suite waits for this line, which Skep has in other words.
        expect_free(REDIGO_PORT)
        write_starter(
            self.starter, server,
            before=f"(until (: </dev/tcp/127.0.0.1/{REDIGO_PORT}) 2>/dev/null; do sleep 0.1; done; "
            "echo ' * Ready to accept connections') &")
        out = run([self.program, "-redis-server", self.starter, "-test.v"])
        passed = len(re.findall(r"^--- PASS", out, re.MULTILINE))
        failed = set(re.findall(r"^--- FAIL: (\S+)", out, re.MULTILINE))
        return passed if re.search(r"^(PASS|FAIL)$", out, re.MULTILINE) else None, failed, out


class RedisLua:
    """redis-lua: every command that it has, by itself, in pipelines and in transactions."""

    def __init__(self, folder):
        self.folder = folder
        with open(LUA_TESTS, encoding="utf-8") as file:
            tests = file.read()
        # The tests take for granted that the client's module has made this name global.
        with open(os.path.join(folder, "tests.lua"), "w", encoding="utf-8") as file:
            file.write("socket = require 'socket'\n" +
                       re.sub(r"port( *)= 6379", rf"port\1= {LUA_PORT}", tests, count=1))

    def failures(self, server):
        expect_free(LUA_PORT)
        process = subprocess.Popen(
            ["redis-server", *server[1:], "--port", str(LUA_PORT), "--bind", "127.0.0.1"],
            executable=server[0], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=self.folder)
        try:
            await_port(LUA_PORT, process)
            out = run(["lua5.1", "-e", "local telescope = require 'telescope'; "
                       "dofile('tests.lua'); telescope.print_counts()"], cwd=self.folder,
                      env=dict(os.environ, LUA_PATH=f"{HERE}/?.lua;;"))
        finally:
            process.terminate()
            process.wait()
        counts = re.search(r"^(\d+) passed, (\d+) failed$", out, re.MULTILINE)
        return counts and int(counts.group(1)), set(
            re.findall(r"^FAILED ([^\t]*)", out, re.MULTILINE)), out


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    is_right = True
    with tempfile.TemporaryDirectory() as folder:
        for name, suite in (("go-redis", GoRedis), ("redigo", Redigo), ("redis-lua", RedisLua)):
            tests = suite(folder)
            results = {}
            for at, server in binaries(sys.argv[1]).items():
                passed, failed, out = tests.failures(server)
                if passed is None:
                    print(out[-3000:])
                    sys.exit(f"suites: {name} did not come to its end at {at}")
                results[at] = failed
                print(f"{name}: {at} passes {passed} of {passed + len(failed)}", flush=True)
            alone = results["skep"] - results["redis"]
            for test in sorted(alone):
                print(f"    {test}: {KNOWN[name].get(test, 'NOT KNOWN')}")
            ended = sorted(set(KNOWN[name]) - alone)
            for test in ended:
                print(f"    {test}: is known to fail, and does not")
            is_right = is_right and not ended and alone <= set(KNOWN[name])
    sys.exit(0 if is_right else 1)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""What gdb knows of vez: in a running program and in a core dump alike, nothing of which is run or written.

    (gdb) source /usr/local/share/vez/vez-gdb.py     (not needed where gdb loads it with the library by itself)
    (gdb) print connections                          an object: its state in words
    (gdb) vez waits                                  who waits for what, and who owns it
    (gdb) vez deadlocks                              which threads wait for each other in a circle

vez waits and vez deadlocks need the library's debugging information. With inspection on (VEZ_INSPECT=1) they know what
vez_inspect knows: asynchronous requests, owners, names. Without it they know of blocked threads alone, from their stacks.
"""

import re

import gdb

FOREVER = (1 << 63) - 1
LOCKED = 1


# ---- objects ----

def bits(word, low, high):
    return word >> low & (1 << high - low + 1) - 1


def word_of(value):
    return int(value["core_"]["word_"])


def words_for(pairs, word):
    return [text for bit, text in pairs if word >> bit & 1]


def count(number, what):
    return f"{number} {what}" + ("" if number == 1 else "s")


def sem(v, w):
    below = int(v["below_max_"])
    return [count(bits(w, 32, 63), "permit"), f"at most {(1 << 31) - 1 - below}" if below else ""] + \
        words_for([(2, "closed"), (3, "barging")], w)


def mutex(v, w):
    held = ["locked" if bits(w, 32, 32) else "free"]
    if int(v["holds_"]) > 1:
        held += [count(int(v["holds_"]), "hold")]
    return held + ["fair"] * int(v["fair_"]) + words_for([(37, "recursive"), (38, "error checking")], w)


def rwlock(_, w):
    if bits(w, 62, 62):
        state = "held for writing"
    elif bits(w, 32, 46):
        state = count(bits(w, 32, 46), "read hold")
    else:
        state = "free"
    return [state] + words_for([(63, "one upgraded"), (2, "first come first served"), (3, "readers first")], w)


def event(_, w):
    return ["set" if bits(w, 3, 3) else "not set", "automatic" if bits(w, 2, 2) else "manual"]


def latch(_, w):
    return ["open"] if bits(w, 32, 63) == 0 else [f"{bits(w, 32, 63)} to go"]


def barrier(v, w):
    here = int(v["core_"]["length_"]) - int(v["decided_"])
    return [f"{here} of {int(v['parties_'])} here"] + words_for([(2, "its action runs"), (3, "broken")], w)


def group(_, w):
    inside = bits(w, 35, 63)
    return [f"{count(inside, 'member')} of group {bits(w, 3, 34)}" if inside else "empty"]


def sched(v, w):
    return ["entered" if bits(w, 32, 32) else "free", f"gap {int(v['gap_'])} ns" if int(v["gap_"]) else ""]


def once(_, w):
    return ["done" if bits(w, 3, 3) else "running" if bits(w, 2, 2) else "not yet"]


def queue(v, w):
    return [f"{int(v['length_'])} of {int(v['capacity_'])} stored"] + words_for([(2, "closed")], w) + \
        [count(int(v["putters_length_"]), "put") + " and " + count(int(v["takers_length_"]), "take") + " wait"]


def cond(v, _):
    return [f"with mutex {int(v['mutex_']):#x}"] if int(v["core_"]["length_"]) else []


def monitor(_, w):
    return ["somebody inside" if w & LOCKED else "nobody inside"]


STATES = {"sem": sem, "mutex": mutex, "rwlock": rwlock, "event": event, "latch": latch, "barrier": barrier,
          "group": group, "sched": sched, "once": once, "queue": queue, "cond": cond, "monitor": monitor}


def core_object(name):
    def describe(v):
        parts = [part for part in STATES[name](v, word_of(v)) if part]
        return ", ".join(parts + [f"{int(v['core_']['length_'])} waiting"])
    return describe


def request(v):
    word = int(v["word_"])
    state = "complete" if word & 8 else "settled" if word & 1 else "queued" if int(v["state_"]) & 1 else "idle"
    parts = [state, "asynchronous" if word & 64 else ""]
    if word & 8 and word & 64:
        parts.append(f"result {int(v['at_']['result_'])}")
    return ", ".join(part for part in parts if part)


def cancel(v):
    return "fired" if int(v["arrivals_"]) & 1 else "not fired"


def constrained(v):
    inside = "in use" if int(v["lock_"]) & LOCKED else "not in use"
    return f"{inside}, self {int(v['self_']):#x}, {int(v['core_']['length_'])} waiting"


def function(pointer):
    """A function by its name, without the brackets that gdb puts around it."""
    found = re.search(r"<(.*)>", str(pointer))
    return found[1] if found else f"{int(pointer):#x}"


def operation(v):
    return f'"{v["name"].string()}", {function(v["body"])}' if int(v["name"]) else function(v["body"])


def rule(v, what):
    r = v["rule_"]
    if not int(r["object_"]):
        return "of no object"
    op = r["operation_"]
    of = operation(op.dereference()) if int(op) else "every operation"
    return f"{function(r['is_'][what])} for {of} of object {int(r['object_']):#x}"


def guarded(v):
    when = f" when {function(v['guard'])}" if int(v["guard"]) else ""
    return f"{function(v['body'])}{when}, in monitor {int(v['monitor']):#x}"


OTHERS = {
    "request": request, "cancel": cancel, "object": constrained,
    "cancel_hook": lambda v: f"calls {function(v['fn_'])} when token {int(v['token_']):#x} fires",
    "operation": operation, "guarded": guarded,
    "constraint": lambda v: rule(v, "guard_"), "trigger": lambda v: rule(v, "fn_"),
    "room": lambda v: f"{int(v['length_'])} waiting",
    "completions": lambda v: "something is listed" if int(v["first_"]) or int(v["last_"]) else "empty",
    "select": lambda v: f"{int(v['filed_'])} filed, " + ("won" if int(v["won_"]) else "nobody has won"),
    "synchronizer": lambda v: f"relates {count(int(v['count_']), 'object')}",
}
DESCRIPTIONS = {**{name: core_object(name) for name in STATES}, **OTHERS}


class Printer:
    """An object's state, then its members for who asks for them (print /r, or set print pretty)."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def to_string(self):
        try:
            return f"{self.name}: {DESCRIPTIONS[self.name](self.value)}"
        except gdb.error as error:
            return f"{self.name}: cannot be read ({error})"


def names_of(kind):
    """What a type is called: of vez_once_t, which has no tag, only the name of the typedef is there."""
    while kind.code == gdb.TYPE_CODE_TYPEDEF:
        yield re.fullmatch(r"vez_([a-z_]+)_t", kind.name or "")
        kind = kind.target()
    if kind.code == gdb.TYPE_CODE_STRUCT:
        yield re.fullmatch(r"vez_([a-z_]+)", kind.tag or "")


def find_printer(value):
    found = [name[1] for name in names_of(value.type.unqualified()) if name and name[1] in DESCRIPTIONS]
    return Printer(found[0], value) if found else None


# ---- who waits ----

class Wait:
    """One request that waits; thread is the kernel's number of its thread, or 0."""

    def __init__(self, what, place, thread, request_at, deadline=None, token=0):
        self.what, self.place, self.thread, self.request = what, place, thread, request_at
        self.deadline, self.token = deadline, token
        self.owner = 0
        self.follows = False


def symbol(name):
    found = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    if not found:
        raise gdb.GdbError(f"{name} is not known: the library has no debugging information here.")
    return found.value()


def linked(first, link):
    while int(first):
        yield first.dereference()
        first = first[link]


def type_name(what):
    try:
        kinds = gdb.lookup_type("enum vez__type").fields()
    except gdb.error:
        return "object"
    return next((k.name[len("VEZ__"):].lower() for k in kinds if k.enumval == what), "object")


class Records:
    """What is written down for inspection."""

    def __init__(self):
        self.waits, self.owners, self.names = [], {}, {}
        threads, shards = symbol("vez__threads"), symbol("vez__shards")
        for r in linked(threads["first"], "next"):
            self.add_wait(r)
            for part in linked(r.address, "more"):
                self.add_owned(int(r["thread"]), part)
        for i in range(shards.type.range()[1] + 1):
            for r in linked(shards[i]["first"], "next"):
                if str(r["kind"]) and int(r["kind"]) == 2:
                    self.add_wait(r)
                elif int(r["kind"]) == 3:
                    self.names[int(r["key"])] = r["words"].address.cast(gdb.lookup_type("char").pointer()).string()
        for w in self.waits:
            w.owner = self.owners.get(w.place, 0)

    def add_wait(self, r):
        if int(r["turn"]) % 2 == 0:
            return
        w = r["wait"].address.cast(gdb.lookup_type("struct vez__wait").pointer()).dereference()
        moved = int(r["moved"]) == int(w["request"])
        what = "mutex" if moved else type_name(int(w["what"]))
        place = int(r["moved_to"] if moved else w["object"])
        deadline = FOREVER if moved else int(w["deadline"])
        self.waits.append(Wait(what, place, int(w["thread"]), int(w["request"]), deadline, int(w["token"])))

    def add_owned(self, thread, part):
        low, high = part["words"].type.range()
        for i in range(low, high + 1):
            if int(part["words"][i]):
                self.owners[int(part["words"][i])] = thread


def wait_of_request(r, thread):
    rules = r["rules_"].dereference()
    at = int(r["queue_"])
    if int(rules["queue"]) == (1 << 64) - 1:
        room = r["queue_"].cast(gdb.lookup_type("vez_room_t").pointer())
        core = int(room["monitor_"])
    else:
        core = at - int(rules["queue"])
    return Wait(type_name(int(rules["type"])), core - int(rules["object"]), thread, int(r.address))


def wait_of_follower(frame, thread):
    """A thread that waits for a round to end, without a request."""
    w = Wait(type_name(int(frame.read_var("type"))), int(frame.read_var("object")), thread, 0)
    w.follows = True
    return w


def frames_of(thread):
    """Frames and their functions' names, without what compilers append to those (.constprop.0)."""
    thread.switch()
    frame = gdb.newest_frame()
    while frame and frame.is_valid():
        yield frame, (frame.name() or "").partition(".")[0]
        frame = frame.older()


def waits_of_stacks():
    chosen = gdb.selected_thread()
    try:
        for thread in gdb.selected_inferior().threads():
            for frame, name in frames_of(thread):
                if name not in ("vez__await", "vez__follow"):
                    continue
                number = thread.ptid[1] or thread.ptid[0]
                try:
                    if name == "vez__await":
                        yield wait_of_request(frame.read_var("r").dereference(), number)
                    else:
                        yield wait_of_follower(frame, number)
                except (gdb.error, ValueError):
                    yield Wait("something that cannot be read", 0, number, 0)
    finally:
        if chosen:
            chosen.switch()


def gdb_number(thread):
    for t in gdb.selected_inferior().threads():
        if thread and thread in (t.ptid[1], t.ptid[0]):
            return f" (gdb's {t.num})"
    return ""


def collect():
    """Inspection's waits, and those of threads that it does not know."""
    records = Records()
    known = {w.thread for w in records.waits}
    records.waits += [w for w in waits_of_stacks() if w.thread not in known]
    return records


def object_text(records, w):
    name = records.names.get(w.place)
    return f"{w.what} {w.place:#x}" + (f' "{name}"' if name else "")


def owner_text(owner):
    return f", owner {owner}{gdb_number(owner)}" if owner else ""


class VezCommand(gdb.Command):
    """What a program waits for in vez: vez waits, vez deadlocks."""

    def __init__(self):
        super().__init__("vez", gdb.COMMAND_STATUS, gdb.COMPLETE_NONE, True)


class WaitsCommand(gdb.Command):
    """Lists the requests that wait, one a line, as vez_inspect does."""

    def __init__(self):
        super().__init__("vez waits", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        records = collect()
        print("vez: " + count(len(records.waits), "request") + (" waits" if len(records.waits) == 1 else " wait"))
        for w in records.waits:
            who = f"thread {w.thread}{gdb_number(w.thread)}" if w.thread else f"async {w.request:#x}"
            limits = ""
            if w.deadline is not None:
                limits = ", no deadline" if w.deadline == FOREVER else ", with a deadline"
                limits += f", token {w.token:#x}" if w.token else ", no token"
            print(f"vez: {object_text(records, w)}: {who}{limits}{owner_text(w.owner)}"
                  + ("; for a round to end, without a request" if w.follows else ""))


class DeadlocksCommand(gdb.Command):
    """Lists the circles of threads each of which waits for what the next one owns. Owners are known to inspection."""

    def __init__(self):
        super().__init__("vez deadlocks", gdb.COMMAND_STATUS)

    def invoke(self, _argument, _from_tty):
        records = collect()
        waits = {w.thread: w for w in records.waits if w.thread and w.deadline == FOREVER}
        circles = find_circles(waits)
        if not circles:
            known = "" if records.owners else "; no owner is known: was inspection on (VEZ_INSPECT=1)?"
            print("vez: no deadlock" + known)
        for circle in circles:
            print(f"vez: deadlock of {count(len(circle), 'thread')}")
            for w in circle:
                print(f"vez:   thread {w.thread}{gdb_number(w.thread)} waits for {object_text(records, w)}"
                      f"{owner_text(w.owner)}")


def find_circles(waits):
    circles, marked = [], set()
    for first in waits.values():
        path = []
        w = first
        while w and w.thread not in marked:
            marked.add(w.thread)
            path.append(w)
            w = waits.get(w.owner)
        if w in path:
            circles.append(path[path.index(w):])
    return circles


gdb.pretty_printers[:] = [p for p in gdb.pretty_printers if getattr(p, "__name__", "") != find_printer.__name__]
gdb.pretty_printers.append(find_printer)
VezCommand()
WaitsCommand()
DeadlocksCommand()

"""geo.py: the commands about places, and how to draw them.

The places are near each other, and no two are equally far from a third by luck.
"""

from .collections import LEX_KEYS, WRONG_TYPE
from .shape import NIL_OR_SOME, NOT_AN_INTEGER, SYNTAX, Command
from .words import COLLECTION_KEYS

GEO_KEYS = [b"geo1", b"geo2"]
STORED = b"geo3"
MEMBERS = [b"Palermo", b"Catania", b"Agrigento", b"", b"x\x00\xff", b"Roma", b"Tunis"]
PLACES = [(b"13.361389", b"38.115556"), (b"15.087269", b"37.502669"), (b"13.583333", b"37.316667"),
          (b"12.49", b"41.9"), (b"10.18", b"36.8"), (b"0", b"0"), (b"-70.5", b"-33.45"),
          (b"179.999", b"85"), (b"-180", b"-85.05112878"), (b"1e1", b"5.5e1"), (b"13", b"37")]
WRONG_PLACES = [(b"181", b"0"), (b"0", b"86"), (b"abc", b"0"), (b"0", b""), (b"nan", b"1"),
                (b"-180.0001", b"0"), (b"0", b"85.0512"), (b"1e308", b"-1e308")]
UNITS = [b"m", b"km", b"ft", b"mi", b"KM", b"Mi"]
RADII = [b"0", b"100", b"200.5", b"1e3", b"500000", b"0.5", b"100000"]
WRONG_RADII = [b"-1", b"abc", b"", b"nan"]


# The scores of LEX_KEYS stay equal.
OTHER_KEYS = [key for key in COLLECTION_KEYS if key not in LEX_KEYS]


def geo_key(words):
    return words.pick(GEO_KEYS) if words.chance(0.93) else words.pick(OTHER_KEYS)


def place(words):
    return list(words.pick(PLACES if words.chance(0.93) else WRONG_PLACES))


def member(words):
    return words.pick(MEMBERS)


def unit(words):
    return words.pick(UNITS) if words.chance(0.96) else words.junk()


def radius(words):
    return [words.pick(RADII if words.chance(0.95) else WRONG_RADII), unit(words)]


def box(words):
    return [words.pick(RADII if words.chance(0.95) else WRONG_RADII), *radius(words)]


def geoadd(words):
    options = [words.case(each) for each in (b"NX", b"XX", b"CH") if words.chance(0.12)]
    places = [word for _ in range(words.rng.randrange(1, 4))
              for word in (*place(words), member(words))]
    return [geo_key(words), *options, *(places[:-1] if words.chance(0.04) else places)]


def options(words, stores):
    found = []
    for each in ([b"ASC"], [b"DESC"], [b"COUNT", words.pick([b"1", b"2", b"3", b"100"])]):
        if words.chance(0.3):
            found.append(each)
    if words.chance(0.08):
        found.append([b"COUNT", words.pick([b"1", b"2", b"3", b"100"]), b"ANY"])
    for each in (b"WITHDIST", b"WITHHASH", b"WITHCOORD"):
        if words.chance(0.04 if stores else 0.35):
            found.append([each])
    if words.chance(0.05):
        found.append(words.pick([[b"ANY"], [b"COUNT", b"0"], [b"COUNT", b"abc"], [b"COUNT"],
                                 [words.junk()]]))
    words.rng.shuffle(found)
    return [words.case(word) for each in found for word in each]


def search(stores=False):
    def draw(words):
        found = []
        if words.chance(0.97):
            found.append([words.case(b"FROMMEMBER"), member(words)] if words.chance(0.5)
                         else [words.case(b"FROMLONLAT"), *place(words)])
        if words.chance(0.97):
            found.append([words.case(b"BYRADIUS"), *radius(words)] if words.chance(0.6)
                         else [words.case(b"BYBOX"), *box(words)])
        if words.chance(0.03):
            found.append(words.pick([[b"FROMLONLAT", b"1", b"2"], [b"BYBOX", b"1", b"2", b"m"],
                                     [b"FROMMEMBER", b"Roma"], [b"BYRADIUS", b"1", b"m"]]))
        words.rng.shuffle(found)
        destination = [STORED] if stores else []
        distance = [words.case(b"STOREDIST")] if stores and words.chance(0.3) else []
        return [*destination, geo_key(words), *(word for each in found for word in each),
                *options(words, stores), *distance]
    return draw


def georadius(by_member, may_store):
    def draw(words):
        centre = [member(words)] if by_member else place(words)
        stores = may_store and words.chance(0.3)
        store = [words.case(words.pick([b"STORE", b"STOREDIST"])), STORED] if stores else []
        return [geo_key(words), *centre, *radius(words), *options(words, stores), *store]
    return draw


NO_MEMBER = "could not decode requested zset member"
NO_PLACE = "invalid longitude,latitude pair"
NO_UNIT = "unsupported unit"
NO_FLOAT = "not a valid float"
# Around a member that is not there no other error is told, so those are seldom.
MEMBER_ERRORS = (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, NO_MEMBER)
RADIUS_ERRORS = (WRONG_TYPE, SYNTAX, NOT_AN_INTEGER, NO_UNIT, "need numeric radius",
                 "radius cannot be negative", "COUNT must be > 0", "the ANY argument requires")
SEARCH_ERRORS = (*RADIUS_ERRORS, NO_MEMBER, NO_PLACE, NO_FLOAT, "exactly one of FROMMEMBER",
                 "exactly one of BYRADIUS", "need numeric width", "height or width cannot be")
GEO_COMMANDS = {
    "GEOADD": Command(5, geoadd, (WRONG_TYPE, SYNTAX, NO_PLACE, NO_FLOAT)),
    "GEODIST": Command(1, lambda words: [geo_key(words), member(words), member(words),
                                         *([unit(words)] if words.chance(0.6) else [])],
                       (WRONG_TYPE, NO_UNIT), NIL_OR_SOME),
    "GEOHASH": Command(1, lambda words: [geo_key(words), member(words), member(words)],
                       (WRONG_TYPE,)),
    "GEOPOS": Command(1, lambda words: [geo_key(words), member(words), member(words)],
                      (WRONG_TYPE,)),
    "GEORADIUS": Command(1.5, georadius(False, True), (*RADIUS_ERRORS, NO_PLACE, NO_FLOAT,
                                                       "STORE option in GEORADIUS")),
    "GEORADIUSBYMEMBER": Command(1.5, georadius(True, True), MEMBER_ERRORS),
    "GEORADIUSBYMEMBER_RO": Command(1, georadius(True, False), MEMBER_ERRORS),
    "GEORADIUS_RO": Command(1, georadius(False, False), (*RADIUS_ERRORS, NO_PLACE)),
    "GEOSEARCH": Command(3, search(), SEARCH_ERRORS),
    "GEOSEARCHSTORE": Command(2, search(stores=True), (*MEMBER_ERRORS, NO_PLACE)),
}

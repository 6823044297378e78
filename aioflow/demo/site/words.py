"""The words of which houses are made: towns, streets, people, and sentences about them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Town:
    """A town with houses for sale: how many beside those of the standard search, and for how much."""

    name: str
    state: str
    zips: tuple[str, ...]
    houses: int
    lowest: int
    highest: int


# The first is the town of the standard search; its further houses cost more than that search allows.
TOWNS = (
    Town("Irvine", "CA", ("92602", "92603", "92604", "92606", "92612", "92614", "92620"), 21, 552, 1290),
    Town("Tustin", "CA", ("92780", "92782"), 23, 389, 820),
    Town("Costa Mesa", "CA", ("92626", "92627"), 17, 410, 790),
    Town("Lake Forest", "CA", ("92630",), 14, 372, 690),
    Town("Mission Viejo", "CA", ("92691", "92692"), 19, 399, 880),
    Town("Newport Beach", "CA", ("92660", "92663"), 8, 980, 3900),
    Town("Portland", "OR", ("97202", "97214", "97217"), 13, 179, 520),
    Town("Austin", "TX", ("78704", "78731"), 10, 155, 610),
)

STREETS = (
    "Acacia Lane", "Alderwood", "Almond Tree Lane", "Amberleaf", "Arborside", "Ashford Way", "Bayberry Way",
    "Birdsong", "Bluebell", "Briarglen", "Brookmont", "Canyon Ridge", "Cedar Court", "Clearwater",
    "Clover Hill", "Coralwind", "Cottonwood Drive", "Cranberry", "Deerfield Avenue", "Eaglecreek",
    "Elmhurst", "Fallbrook", "Fern Canyon", "Firwood", "Goldenrod Street", "Grapevine Terrace", "Greenmoor",
    "Hawthorn", "Heather Ridge", "Hollyleaf", "Honeysuckle", "Ironwood", "Juniper Road", "Lakeview Drive",
    "Larkspur", "Laurel Grove", "Lemon Grove", "Magnolia Street", "Maplewood Avenue", "Meadowbrook",
    "Mesa Verde Drive", "Nightingale", "Oak Hollow", "Orangeblossom", "Orchard Park", "Palmetto",
    "Pebblestone", "Pepperwood", "Persimmon", "Pinecrest", "Poplar Street", "Quail Meadow", "Redbud",
    "Rosewood", "Sagebrush", "Sandpiper", "Silkwood", "Songbird", "Springbuck", "Stonegate",
    "Sunflower Street", "Sycamore Creek", "Thistle", "Trailwood", "Tulip Avenue", "Valley Oak",
    "Walnut Avenue", "Westwind", "Wildflower", "Willowrun", "Windsong", "Yorktown",
)  # fmt: skip

FIRST_NAMES = (
    "Alice", "Amir", "Angela", "Arturo", "Beatriz", "Bernard", "Carmen", "Charles", "Denise", "Diego",
    "Edith", "Elena", "Erik", "Frances", "Gloria", "Grace", "Harold", "Ines", "Irene", "James", "Janet",
    "Joon", "Karen", "Kenji", "Laura", "Leonard", "Linh", "Louise", "Manuel", "Marcus", "Mei", "Miriam",
    "Nadia", "Noel", "Olga", "Patrick", "Priya", "Rafael", "Rosa", "Ruth", "Samuel", "Sofia", "Stella",
    "Theo", "Tomas", "Vera", "Walter", "Yusuf",
)  # fmt: skip

LAST_NAMES = (
    "Abbott", "Acosta", "Banerjee", "Barnes", "Becker", "Calloway", "Castillo", "Chen", "Cordova", "Dalton",
    "Delgado", "Ellison", "Farrell", "Fischer", "Fontaine", "Garza", "Haddad", "Hamilton", "Hoang",
    "Ibarra", "Jennings", "Kaplan", "Kowalski", "Lindgren", "Lozano", "Marsh", "McAllister", "Mendoza",
    "Mori", "Nguyen", "O'Brien", "Okafor", "Olsen", "Park", "Peralta", "Quintero", "Ramsey", "Reyes",
    "Rossi", "Sandoval", "Schultz", "Silva", "Sorensen", "Tanaka", "Thornton", "Vargas", "Weaver",
    "Whitfield", "Yamada", "Zimmerman",
)  # fmt: skip

FIRMS = (
    "Harbor & Hill Realty",
    "Pacific Crest Homes",
    "First Street Brokers",
    "Orange Coast Properties",
    "Lantern Real Estate",
    "Bell & Daughters",
)

OPENINGS = (
    "Light pours through this {kind} from the first cup of coffee to the last glass of wine.",
    "A {kind} that has been loved by one family, and shows it in every room.",
    "Set back from the road behind two old sycamores, this {kind} keeps the noise of the town outside.",
    "Rarely does a {kind} on {street} come to the market; this one will not stay there for long.",
    "Completely redone in the last two years, this {kind} asks for nothing but your furniture.",
    "This well-kept {kind} stands at the quiet end of {street}, a short walk from the park.",
)
ROOMS = (
    "The kitchen has granite counters, a gas range and room for everybody who helps with the cooking.",
    "Downstairs, one flowing space joins kitchen, dining and living around a fireplace of river stone.",
    "Upstairs, the main suite looks over the treetops and has a walk-in closet and a bath with two sinks.",
    "Maple floors run through the ground floor; the bedrooms have new carpet.",
    "Every bedroom has a closet of its own, and the smallest would make a fine study.",
    "A skylight brings the morning into the stairwell, and the laundry is where the clothes are: upstairs.",
)
GARDENS = (
    "The patio, in shade after three, leads to a small lawn and a lemon tree that bears most of the year.",
    "Behind the house there is space for a table of twelve, a grill, and a swing.",
    "A low wall keeps the garden private; jasmine does the rest.",
    "The association keeps two pools, a tennis court and miles of paths under eucalyptus.",
    "The side yard has been planted with natives that live on what rain there is.",
)
CLOSINGS = (
    "Schools, shops and the freeway are five minutes away, and none of them can be heard.",
    "Walk to the lake, the library and Saturday's market.",
    "Please call before noon to see it the same day.",
    "Seller will consider a credit for the roof.",
    "Open house on Saturday and Sunday from one to four.",
    "Shown by appointment; please do not disturb the tenants.",
)
FEATURES = (
    "Air conditioning", "Alarm system", "Balcony", "Breakfast nook", "Cathedral ceiling", "Ceiling fans",
    "Community pool", "Corner lot", "Covered patio", "Crown molding", "Cul-de-sac", "Double-glazed windows",
    "Fireplace", "Forced air heating", "Fruit trees", "Garden shed", "Gas range", "Granite counters",
    "Hardwood floors", "Inside laundry", "Mountain view", "New roof", "Plantation shutters", "RV parking",
    "Skylights", "Solar water heating", "Spa", "Sprinklers", "Tile floors", "Vaulted ceiling",
    "Walk-in closet", "Water softener",
)  # fmt: skip
SCHOOLS = (
    ("Brywood", "Elementary"), ("Canyon View", "Elementary"), ("Deerwood", "Elementary"),
    ("Hicks Canyon", "Elementary"), ("Meadow Glen", "Elementary"), ("Stone Creek", "Elementary"),
    ("Turtle Hill", "Elementary"), ("Lakeside", "Middle"), ("Sierra Vista", "Middle"), ("Venado", "Middle"),
    ("Northgate", "High"), ("Ridgeline", "High"), ("Woodbridge", "High"),
)  # fmt: skip

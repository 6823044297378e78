"""Valid texts that together use everything the language has."""

EXAMPLE_PLAN = """
PLAN example_plan
{
  INPUT: a, b
  OUTPUT: f

  BODY
  {
    Op1 (a, b : c)
    Op2 (c : d)
    Op3 (c : ) {ENABLE: e}
    Op4 (d : f, g)
    Op5 (g : ) {WAIT : e}
  }
}
"""

PARENT_PLAN = """
PLAN parent_plan
{
  INPUT: w, x
  OUTPUT: z

  BODY
  {
    Op6 (w : y)
    example_plan (x, y : z)
  }
}
"""

# The paper's texts with their mistakes, none of which is one of syntax.
GET_HOUSES = """
PLAN get_houses
{
  INPUT: criteria
  OUTPUT: filtered-house-details

  BODY
  {
    project (criteria, "price-range", price-info)
    format ("beds = %s", "beds" : bed-info)
    wrapper ("initial", price-info : result-page-info)
    get_urls (house_urls : all-house-urls)
    wrapper ("detail", all-house-urls : all-house-details)
    select (raw-house-details, bed-info : filtered-house-details)
  }
}
"""

GET_URLS = """
PLAN get_urls
{
  INPUT: result-page-info
  OUTPUT: combined-urls

  BODY
  {
    project(result-page-info, "house-url" : curr-urls)
    distinct(result-page-info, "next-page-link" : next-status)
    null (next-status, next-status, next-status : next-page-info, next-urls)
    wrapper ("result-page", next-page-info : next-urls)
    union ( curr-urls, next-urls : combined-urls)
  }
}
"""

WATCH_HOUSES = """
# New houses in one city, with their details, told by mail.
USE "persistent_diff.plan"

WRAPPER search (city, max-price)
{
  GET: "https://homes.example/search{?city,max-price}"
  EACH: "li.house"
  house-url: "a.title @href" url
  price: ".price" number
  next-page-link: page "a.next @href" url
}

WRAPPER result-page (next-page-link) LIKE search
{
  GET: "{+next-page-link}"
}

PLAN watch_houses
{
  INPUT: criteria (city char, max-price number)
  OUTPUT: houses

  BODY
  {
    wrapper ("search", criteria : page)
    get_urls (page : urls)
    persistent_diff (urls : new-urls) {TABLE: "seen_houses"}
    wrapper ("detail", new-urls : details) {ERRORS: failed; WORKERS: 8}
    select (details, "beds >= 3 and price < 550000" : houses)
    email (houses, to="me@example.org", subject="New houses") {DONE: mailed}
    dbupdate ("update runs set last = current_timestamp") {WAIT: mailed}
    log (failed, "no details")
  }
}
"""

EVERYTHING = r'''
/* A block
   comment. */
use 'lib/more.plan' // one
USE """other.plan"""   # two

Recipe line { a "}" # }
  b '{' }

plan Every_thing-1 // name
{ # opens
  once: "url"
  commit: batch
  MAX_DEPTH: 50 stop;
  PARAM: table = "seen", limit, list = [1, -2.5, "x", true, null], since = $started, empty = null
  # what comes in
  INPUT: input (city char, `left.a` number, any), page, plan ( ), body
  OUTPUT: output, output2   // what goes out

  BODY /* between */ { // body
    # first
    op (input, page, "a \"quoted\" 'text'\n", 'it "is"', """three
  "" lines""", 1, -2, 3.5, 1e-9, .5, true, FALSE, Null, $table, [], ["a", 2], key=[1], to=$limit : output, _)

    null (page, plan, body : t, f) { ALL; wait: input, t
      ORDERED
      BY: "city", "zip"; TYPE: inner; N: 5, $limit, [1, 2] ; ENABLE : e;; DONE: d, d2 }   # all of it
    op (t : output2) {ERRORS: Skip} op (: x) op (f # inside
      , /* also inside */ t) {ERRORS: failed}
    very_long_operator_name ("a constant of some length", other_variable, yet_another_variable : with_outputs)
    op ()
    ; true (a) /* the
      end */
  } # body ends
  # plan ends
} // after

# the last word
'''

SAMPLES = {
    "example_plan": EXAMPLE_PLAN,
    "parent_plan": PARENT_PLAN,
    "get_houses": GET_HOUSES,
    "get_urls": GET_URLS,
    "watch_houses": WATCH_HOUSES,
    "everything": EVERYTHING,
}

"""Runs one plan for several cities at once on one engine, which shares its workers between the runs.

Prints:
    Irvine: 2 houses from 390000
    Orange: none
    Tustin: 1 house from 350000
"""

import asyncio

from aioflow import Engine, Result, loads

PLAN = loads("""
PLAN in_city
{
  INPUT: houses (city char, price number)
  OUTPUT: found
  PARAM: city
  BODY
  {
    select (houses, "city = '${city}'" : some)
    sort (some, "price" : found)
  }
}
""")
HOUSES = [
    {"city": "Irvine", "price": 610_000},
    {"city": "Tustin", "price": 350_000},
    {"city": "Irvine", "price": 390_000},
]


def told(city: str, result: Result) -> str:
    if not result:
        return f"{city}: none"
    noun = "house" if len(result) == 1 else "houses"
    return f"{city}: {len(result)} {noun} from {result[0]['price']}"


async def main() -> None:
    cities = ["Irvine", "Orange", "Tustin"]
    async with Engine(workers=8) as engine:
        runs = [engine.run(PLAN, houses=HOUSES, parameters={"city": city}) for city in cities]
        for city, result in zip(cities, await asyncio.gather(*runs), strict=True):
            print(told(city, result))


if __name__ == "__main__":
    asyncio.run(main())

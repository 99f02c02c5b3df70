"""The demo's 500 fictional companies, which are always the same; nobody owns their domains or phone
numbers.

A company's stored score is the one that `analysis.scoreRecord` computes, so that texts never
contradict each other.
"""

import random
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from tools.office.records.models import Record
from tools.office.records.queries import get_records
from tools.office.tools.scoring import score_record

SEED = 20
COUNT = 500
UNSCORED_SHARE = 0.15

FIRST_WORDS = (
    "Alder", "Amber", "Anchor", "Ashgrove", "Aurora", "Beacon", "Birch", "Bluewater", "Bramble", "Bright",
    "Cedar", "Cinder", "Clearfield", "Cobalt", "Compass", "Coral", "Crescent", "Delta", "Driftwood", "Eastgate",
    "Evergreen", "Falcon", "Fernhill", "Foxglove", "Garnet", "Granite", "Greystone", "Harbor", "Hawthorn", "Hazel",
    "Highland", "Indigo", "Ironbridge", "Juniper", "Kestrel", "Lakeside", "Lantern", "Linden", "Magnolia", "Marlin",
    "Meadow", "Meridian", "Millstone", "Northfield", "Oakhurst", "Orchard", "Osprey", "Pinnacle", "Quarry", "Redwood",
    "Ridgeway", "Saffron", "Sandstone", "Silverline", "Stonebridge", "Summit", "Tamarind", "Thistle", "Upland",
    "Vantage", "Vesper", "Westbrook", "Willow", "Windermere", "Yarrow", "Zephyr",
)  # fmt: skip
TRADES = {
    "Logistics": ("Freight", "Logistics", "Shipping", "Haulage"),
    "Manufacturing": ("Castings", "Components", "Precision", "Metalworks"),
    "Retail": ("Outfitters", "Market", "Home", "Stores"),
    "Software": ("Systems", "Software", "Data", "Cloud"),
    "Healthcare": ("Clinics", "Diagnostics", "Dental", "Care"),
    "Food & Beverage": ("Roasters", "Bakeries", "Provisions", "Brewing"),
    "Energy": ("Solar", "Wind", "Power", "Storage"),
    "Construction": ("Builders", "Roofing", "Joinery", "Civil Works"),
    "Finance": ("Capital", "Leasing", "Assurance", "Accounting"),
    "Education": ("Academy", "Learning", "Press", "Institute"),
}


@dataclass(frozen=True)
class Location:
    """A city, with a legal form that is usual there and a phone number format reserved for
    fiction."""

    city: str
    country: str
    legal_form: str
    phone: str


LOCATIONS = {
    "EU": (
        Location("Hamburg", "Germany", "GmbH", "+49 40 66969 {:03}"),
        Location("Munich", "Germany", "GmbH", "+49 89 99998 {:03}"),
        Location("Lyon", "France", "SARL", "+33 1 99 00 {:02} 17"),
        Location("Rotterdam", "Netherlands", "BV", "+31 85 555 0{:03}"),
        Location("Turin", "Italy", "SpA", "+39 011 555 0{:03}"),
        Location("Turku", "Finland", "Oy", "+358 2 555 0{:03}"),
    ),
    "UK": (
        Location("Leeds", "United Kingdom", "Ltd", "+44 113 496 0{:03}"),
        Location("Bristol", "United Kingdom", "Ltd", "+44 117 496 0{:03}"),
        Location("Glasgow", "United Kingdom", "plc", "+44 141 496 0{:03}"),
    ),
    "US": (
        Location("Portland", "United States", "Inc", "+1 503 555 01{:02}"),
        Location("Columbus", "United States", "LLC", "+1 614 555 01{:02}"),
        Location("Austin", "United States", "Corp", "+1 512 555 01{:02}"),
    ),
    "APAC": (
        Location("Melbourne", "Australia", "Pty Ltd", "+61 3 7010 0{:03}"),
        Location("Singapore", "Singapore", "Pte Ltd", "+65 6555 0{:03}"),
        Location("Osaka", "Japan", "KK", "+81 6 5550 0{:03}"),
    ),
    "LATAM": (
        Location("Valparaíso", "Chile", "SpA", "+56 32 255 5{:03}"),
        Location("Guadalajara", "Mexico", "SA", "+52 33 5555 0{:03}"),
        Location("Curitiba", "Brazil", "Ltda", "+55 41 5555 0{:03}"),
    ),
}
MAILBOXES = ("info", "office", "hello", "sales", "contact", "purchasing")
NOTES = {
    "active": (
        "Orders every quarter; pays on time.",
        "Asked for a framework agreement at the last meeting.",
        "Long-standing customer; the buyer changed this spring.",
        "Prefers delivery on Tuesdays and invoices by email.",
        "",
        "",
    ),
    "pending": (
        "Met at the trade fair in Hanover; wants a quote.",
        "Waiting for the signed contract.",
        "Sample sent, no answer yet.",
        "",
    ),
    "inactive": (
        "Contract ended; no new order since.",
        "Moved to another supplier; friendly parting.",
        "Mail bounces and the telephone is not answered.",
        "",
    ),
}
INACTIVE_CANDIDATE = (
    "Inactive candidate: no order since 2022, and the last three letters came back."
)
EVENT_LEAD = "Business card from the 2019 spring fair; never answered."
FIXED: tuple[dict[str, Any], ...] = (
    {
        "name": "Acme Corp", "region": "EU", "category": "Manufacturing", "status": "active",
        "email": "purchasing@acme-corp.example", "domain": "acme-corp.example", "phone": "+49 40 66969 001",
        "notes": "Largest customer in the region; contract renewal is due in spring.",
        "attributes": {"city": "Hamburg", "country": "Germany", "employees": 640, "annual_revenue": 84_000_000},
    },
    {
        "name": "Borealis Freight", "region": "EU", "category": "Logistics", "status": "active",
        "email": "office@borealis-freight.example", "domain": "borealis-freight.example", "phone": "",
        "notes": INACTIVE_CANDIDATE,
        "attributes": {"city": "Turku", "country": "Finland", "employees": 12},
    },
    {
        "name": "Copperfield Textiles", "region": "EU", "category": "Retail", "status": "active",
        "email": "", "domain": "copperfield-textiles.example", "phone": "+33 1 99 00 03 17",
        "notes": INACTIVE_CANDIDATE,
        "attributes": {"city": "Lyon", "country": "France", "employees": 8},
    },
    {
        "name": "Dovetail Joinery", "region": "EU", "category": "Construction", "status": "active",
        "email": "", "domain": "dovetail-joinery.example", "phone": "",
        "notes": INACTIVE_CANDIDATE,
        "attributes": {"city": "Rotterdam", "country": "Netherlands", "employees": 5},
    },
    {
        "name": "Ember & Oak Hospitality", "region": "US", "category": "Food & Beverage", "status": "pending",
        "email": "hello@ember-and-oak.example", "domain": "ember-and-oak.example",
        "phone": "+1 503 555 0105", "notes": "Asked for a quote for four restaurants; decides this month.",
        "attributes": {"city": "Portland", "country": "United States", "employees": 210, "annual_revenue": 15_500_000},
    },
    {
        "name": "Fenwick Catering", "region": "UK", "category": "Food & Beverage", "status": "active",
        "email": "office@fenwick-catering.example", "domain": "fenwick-catering.example", "phone": "+44 113 496 0118",
        "notes": "Pays 30 days after the invoice.",
        "attributes": {"city": "Leeds", "country": "United Kingdom", "employees": 34, "annual_revenue": 2_100_000},
    },
    {
        "name": "Gorse Hill Outdoor", "region": "UK", "category": "Retail", "status": "active",
        "email": "sales@gorse-hill.example", "domain": "gorse-hill.example", "phone": "+44 117 496 0152",
        "notes": "Orders tents every March.",
        "attributes": {"city": "Bristol", "country": "United Kingdom", "employees": 61, "annual_revenue": 5_400_000},
    },
    {
        "name": "Hollybrook Dairy", "region": "UK", "category": "Food & Beverage", "status": "active",
        "email": "hello@hollybrook-dairy.example", "domain": "hollybrook-dairy.example", "phone": "",
        "notes": "Asked us to note its new telephone number.",
        "attributes": {"city": "Glasgow", "country": "United Kingdom", "employees": 19, "annual_revenue": 1_300_000},
    },
    {
        "name": "Inkwell Stationers", "region": "UK", "category": "Retail", "status": "active",
        "email": "purchasing@inkwell.example", "domain": "inkwell.example", "phone": "+44 141 496 0177",
        "notes": "Orders paper once a month.",
        "attributes": {"city": "Glasgow", "country": "United Kingdom", "employees": 23, "annual_revenue": 1_700_000},
    },
)  # fmt: skip
SILENT_SINCE = {"Copperfield Textiles": 2021, "Dovetail Joinery": 2022}
"""Active companies that no longer file accounts in the demo's register: {name: latest year}."""
EVENT_LEADS = (
    "Alpenglow Crafts", "Bento Kiosk", "Canvas & Crate", "Dune Surfwear", "Echo Print Shop", "Firefly Toys",
    "Gull Harbour Inn", "Honeycomb Gifts", "Ivory Keys Music", "Jade Garden Tea", "Kite & Key Travel", "Loom Lane",
)  # fmt: skip


def generate_demo_companies(count: int = COUNT) -> list[dict[str, Any]]:
    """Generate companies with unique names, as Record fields: first the fixed ones, then old event
    leads, then composed ones.

    Args:
        count: the total number, from 21 to 2,000.
    """
    companies = [
        *map(_add_score, FIXED),
        *(_add_score(_build_event_lead(name)) for name in EVENT_LEADS),
    ]
    rng = random.Random(SEED)
    pairs = [
        (word, category, trade)
        for word in FIRST_WORDS
        for category, trades in TRADES.items()
        for trade in trades
    ]
    for word, category, trade in rng.sample(pairs, count - len(companies)):
        company = _compose_company(f"{word} {trade}", category, rng)
        companies.append(company if rng.random() < UNSCORED_SHARE else _add_score(company))
    return companies


def add_demo_companies(organization_id: int, count: int = COUNT) -> int:
    """Add the companies whose names are not among the organization's records; return the number of
    new records."""
    with transaction.atomic():
        existing = set(get_records(organization_id).values_list("name", flat=True))
        missing = [
            company for company in generate_demo_companies(count) if company["name"] not in existing
        ]
        Record.objects.bulk_create(
            [Record(organization_id=organization_id, **company) for company in missing],
            batch_size=count,
        )
    return len(missing)


def _compose_company(base: str, category: str, rng: random.Random) -> dict[str, Any]:
    region = rng.choices(list(LOCATIONS), weights=(36, 16, 24, 14, 10))[0]
    location = rng.choice(LOCATIONS[region])
    status = rng.choices(("active", "pending", "inactive"), weights=(64, 16, 20))[0]
    employees = int(5 * 2 ** rng.uniform(0, 8))
    domain = f"{_slugify(base)}.example"
    return {
        "name": f"{base} {location.legal_form}",
        "region": region,
        "category": category,
        "status": status,
        "email": "" if rng.random() < 0.08 else f"{rng.choice(MAILBOXES)}@{domain}",
        "domain": domain,
        "phone": "" if rng.random() < 0.12 else location.phone.format(rng.randrange(100)),
        "notes": rng.choice(NOTES[status]),
        "attributes": {
            "city": location.city,
            "country": location.country,
            "employees": employees,
            "annual_revenue": employees * rng.randrange(60, 240) * 1_000,
            "customer_since": rng.randrange(2008, 2026),
        },
    }


def _add_score(company: dict[str, Any]) -> dict[str, Any]:
    return {**company, "score": score_record(Record(**company))["score"]}


def _build_event_lead(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "region": "APAC",
        "category": "Event lead",
        "status": "inactive",
        "email": f"info@{_slugify(name)}.example",
        "domain": f"{_slugify(name)}.example",
        "phone": "",
        "notes": EVENT_LEAD,
        "attributes": {"source": "spring fair 2019"},
    }


def _slugify(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")

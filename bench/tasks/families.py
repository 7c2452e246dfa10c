"""The sixty tasks: twenty kinds, each with three sets of words and numbers; the third has large answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import dedent
from typing import Any

from bench.tasks.task import State, Task

Check = Callable[[State, str], bool]


def all_tasks() -> tuple[Task, ...]:
    """Sixty tasks, in a fixed order."""
    return tuple(
        Task(f"{kind.__name__}-{index}", *_dedented(*kind(*words)), is_large=index == 2)
        for kind, variants in _VARIANTS.items()
        for index, words in enumerate(variants)
    )


def _dedented(prompt: str, script: str, check: Check) -> tuple[str, str, Check]:
    return prompt, dedent(script).strip() + "\n", check


def close_issue(words: str, number: int) -> tuple[str, str, Check]:
    script = f"""
        found = search_issues(text={words!r})
        update_issue(id=found["issues"][0]["id"], state="closed")
    """
    return f"Close the open issue about: {words}.", script, lambda s, a: s["issues"][number]["state"] == "closed"


def assign_unowned(label: str, person: str, numbers: tuple[int, ...]) -> tuple[str, str, Check]:
    script = f"""
        found = search_issues(label={label!r})
        for issue in found["issues"]:
            if issue["assignee"] == "":
                update_issue(id=issue["id"], assignee={person!r})
    """
    prompt = f"Every open issue with the label {label} that nobody works on goes to {person}."
    return prompt, script, lambda s, a: all(s["issues"][one]["assignee"] == person for one in numbers)


def report_issue(title: str, label: str) -> tuple[str, str, Check]:
    script = f"create_issue(title={title!r}, labels=[{label!r}])"
    return (
        f'Open an issue "{title}" with the label {label}.',
        script,
        lambda s, a: any(one["title"] == title and one["labels"] == [label] for one in s["issues"].values()),
    )


def comment(words: str, text: str, number: int) -> tuple[str, str, Check]:
    script = f"""
        found = search_issues(text={words!r})
        comment_on_issue(id=found["issues"][0]["id"], text={text!r})
    """
    return (
        f'Write "{text}" under the issue about: {words}.',
        script,
        lambda s, a: s["issues"][number]["comments"] == [text],
    )


def count_label(label: str, count: int) -> tuple[str, str, Check]:
    script = f"""
        found = search_issues(state="any", label={label!r})
        answer = str(found["total"])
    """
    return f"How many issues, open or closed, have the label {label}?", script, lambda s, a: a == str(count)


def move_meeting(title: str, start: str, end: str, number: str) -> tuple[str, str, Check]:
    script = f"""
        found = list_events(date_from="2026-03-01", date_to="2026-03-31")
        for event in found["events"]:
            if event["title"] == {title!r}:
                move_event(id=event["id"], start={start!r}, end={end!r})
    """
    prompt = f"Move the event {title} of March 2026 to {start}, until {end}."
    return prompt, script, lambda s, a: (s["events"][number]["start"], s["events"][number]["end"]) == (start, end)


def cancel_day(day: str, reason: str, numbers: tuple[str, ...]) -> tuple[str, str, Check]:
    script = f"""
        found = list_events(date_from={day!r}, date_to={day!r})
        for event in found["events"]:
            cancel_event(id=event["id"], reason={reason!r})
    """
    prompt = f"Cancel everything on {day}; the reason is: {reason}."
    return prompt, script, lambda s, a: all(s["events"][one]["reason"] == reason for one in numbers)


def meet(title: str, people: tuple[str, ...], start: str, end: str) -> tuple[str, str, Check]:
    script = f"create_event(title={title!r}, start={start!r}, end={end!r}, attendees={[*people]!r})"
    return (
        f"Invite {', '.join(people)} to {title} on {start}, until {end}.",
        script,
        lambda s, a: any(
            (one["title"], one["start"], one["attendees"]) == (title, start, [*people]) for one in s["events"].values()
        ),
    )


def busiest(first: str, last: str, person: str) -> tuple[str, str, Check]:
    script = f"""
        found = list_events(date_from={first!r}, date_to={last!r})
        counts = {{}}
        for event in found["events"]:
            for who in event["attendees"]:
                counts[who] = counts.get(who, 0) + 1
        most = max(counts.values())
        answer = sorted([who for who in counts if counts[who] == most])[0]
    """
    prompt = f"Who takes part in most events from {first} to {last}? The first in the alphabet, if it is several."
    return prompt, script, lambda s, a: a == person


def file_away(folder: str, to: str, names: tuple[str, ...]) -> tuple[str, str, Check]:
    script = f"""
        found = list_documents(folder={folder!r})
        for document in found["documents"]:
            move_document(path=document["path"], to={to!r} + "/" + document["path"].split("/")[1])
    """
    prompt = f"Move all documents of the folder {folder} to the folder {to}."
    return prompt, script, lambda s, a: all(f"{to}/{one}" in s["documents"] for one in names)


def find_contact(path: str, words: str, wanted: str) -> tuple[str, str, Check]:
    script = f"""
        text = read_document(path={path!r})["text"]
        sentences = text.split(". ")
        answer = [one for one in sentences if {words!r} in one][0]
    """
    return (
        f'Which sentence of the document {path} says something about "{words}"?',
        script,
        lambda s, a: wanted in a,
    )


def actions_to_issues(person: str, wanted: tuple[str, ...]) -> tuple[str, str, Check]:
    script = f"""
        for document in list_documents(folder="minutes")["documents"]:
            text = read_document(path=document["path"])["text"].split("\\n")[0]
            for part in text.split("ACTION ")[1:]:
                who, what = part.split(": ")
                if who == {person!r}:
                    made = create_issue(title=what.strip().rstrip("."), labels=["action"])
                    update_issue(id=made["id"], assignee={person!r})
    """
    prompt = f"Open an issue, assigned to {person} and labelled action, for each ACTION of {person} in the minutes."

    def check(s: State, a: str) -> bool:
        made = {one["title"] for one in s["issues"].values() if "action" in one["labels"] and one["assignee"] == person}
        return made == {*wanted}

    return prompt, script, check


def finish_draft(name: str, ending: str) -> tuple[str, str, Check]:
    script = f"""
        text = read_document(path="drafts/{name}")["text"]
        write_document(path="final/{name}", text=text.replace("DRAFT ", "").split("\\n")[0] + {ending!r})
    """
    return (
        f'Write final/{name}: the first line of drafts/{name} without the word DRAFT, and "{ending}" behind it.',
        script,
        lambda s, a: _ends(s["documents"].get(f"final/{name}", "DRAFT"), ending),
    )


def _ends(text: str, ending: str) -> bool:
    return text.endswith(ending) and "DRAFT" not in text and len(text) < 300


def buy(customer: str, product: str, count: int) -> tuple[str, str, Check]:
    script = f"""
        found = search_products(text={product!r})["products"]
        if found[0]["stock"] >= {count}:
            order = place_order(customer={customer!r}, items=[{{"product": found[0]["name"], "count": {count}}}])
            answer = str(order["total_cents"])
    """
    prompt = f"Buy {count} of {product} for {customer} if the shop has so many. What does it cost, in cents?"

    def check(s: State, a: str) -> bool:
        orders = [one for one in s["orders"].values() if one["customer"] == customer]
        return (
            bool(orders)
            and orders[-1]["items"] == [{"product": product, "count": count}]
            and a == str(orders[-1]["total_cents"])
        )

    return prompt, script, check


def cheapest(words: str, wanted: str) -> tuple[str, str, Check]:
    script = f"""
        found = search_products(text={words!r}, in_stock=True)["products"]
        best = found[0]
        for product in found:
            if product["price_cents"] < best["price_cents"]:
                best = product
        answer = best["name"]
    """
    return f'What is the cheapest "{words}" that the shop has in stock?', script, lambda s, a: a == wanted


def refund_all(customer: str, status: str, numbers: tuple[int, ...]) -> tuple[str, str, Check]:
    script = f"""
        for order in list_orders(customer={customer!r}, status={status!r})["orders"]:
            refund_order(id=order["id"], reason="broken on arrival")
    """
    prompt = f"Refund all {status} orders of {customer}: they were broken on arrival."
    return prompt, script, lambda s, a: all(s["orders"][one]["reason"] == "broken on arrival" for one in numbers)


def best_customer(wanted: str, statuses: tuple[str, ...]) -> tuple[str, str, Check]:
    script = f"""
        totals = {{}}
        for order in list_orders()["orders"]:
            if order["status"] in {[*statuses]!r}:
                totals[order["customer"]] = totals.get(order["customer"], 0) + order["total_cents"]
        most = max(totals.values())
        answer = [who for who in totals if totals[who] == most][0]
    """
    prompt = f"Which customer spent most in the shop? Count orders that are {' or '.join(statuses)}."
    return prompt, script, lambda s, a: a == wanted


def alert_at_peak(metric: str, channel: str) -> tuple[str, str, Check]:
    script = f"""
        points = query_metric(name={metric!r})["points"]
        peak = max([point["value"] for point in points])
        create_alert(metric={metric!r}, above=peak, channel={channel!r})
        answer = str(peak)
    """
    prompt = f"Alert by {channel} if {metric} goes above what it reached in the last 24 hours."

    def check(s: State, a: str) -> bool:
        alert = s["alerts"].get(metric)
        return alert is not None and (str(alert["above"]), alert["channel"]) == (str(float(a)), channel)

    return prompt, script, check


def alert_on_all(prefix: str, above: float, names: tuple[str, ...]) -> tuple[str, str, Check]:
    script = f"""
        for metric in list_metrics(prefix={prefix!r})["metrics"]:
            if metric["alerts"] == []:
                create_alert(metric=metric["name"], above={above}, channel="chat")
    """
    prompt = f"Alert by chat on every metric that begins with {prefix} and has no alert, above {above:g}."
    return prompt, script, lambda s, a: all(s["alerts"].get(one, {}).get("above") == above for one in names)


def quiet_and_tell(metric: str, minutes: int, words: str, number: int) -> tuple[str, str, Check]:
    script = f"""
        silence_alert(metric={metric!r}, minutes={minutes})
        found = search_issues(text={words!r})
        comment_on_issue(id=found["issues"][0]["id"], text="alert silenced")
    """
    prompt = (
        f'Silence the alert on {metric} for {minutes} minutes, and write "alert silenced" under the issue: {words}.'
    )

    def check(s: State, a: str) -> bool:
        return s["alerts"][metric]["silent_min"] == minutes and s["issues"][number]["comments"] == ["alert silenced"]

    return prompt, script, check


_VARIANTS: dict[Callable[..., tuple[str, str, Check]], Iterable[tuple[Any, ...]]] = {
    close_issue: (("dark theme", 105), ("password reset", 111), ("search accents", 108)),
    assign_unowned: (("docs", "bo", (103,)), ("ui", "ana", (105,)), ("bug", "dee", (106, 111))),
    report_issue: (("The menu is cut off", "ui"), ("Wrong tax", "billing"), ("Slow start", "performance")),
    comment: (
        ("export of reports", "Seen again.", 102),
        ("map slow", "Fixed in the next version.", 112),
        ("invoices currency", "Which country?", 107),
    ),
    count_label: (("ops", 1), ("ui", 3), ("bug", 4)),
    move_meeting: (
        ("Customer call", "2026-03-04T13:00", "2026-03-04T13:30", "ev3"),
        ("Release", "2026-03-06T10:00", "2026-03-06T12:00", "ev6"),
        ("Training", "2026-03-10T09:00", "2026-03-10T17:00", "ev8"),
    ),
    cancel_day: (
        ("2026-03-02", "office closed", ("ev1", "ev2")),
        ("2026-03-03", "strike", ("ev3", "ev4")),
        ("2026-03-06", "holiday", ("ev7",)),
    ),
    meet: (
        ("Lunch", ("ana", "dee"), "2026-03-11T12:00", "2026-03-11T13:00"),
        ("Budget", ("bo",), "2026-03-12T09:00", "2026-03-12T11:00"),
        ("Demo", ("ana", "bo", "cem"), "2026-03-13T15:00", "2026-03-13T15:30"),
    ),
    busiest: (
        ("2026-03-02", "2026-03-06", "ana"),
        ("2026-03-02", "2026-03-02", "bo"),
        ("2026-03-05", "2026-03-09", "ana"),
    ),
    file_away: (
        ("drafts", "archive", ("launch.txt", "prices.txt")),
        ("minutes", "minutes-2026", ("2026-02-02.txt", "2026-02-16.txt")),
        ("handbook", "rules", ("leave.txt", "travel.txt")),
    ),
    find_contact: (
        ("handbook/leave.txt", "contact", "ana"),
        ("handbook/security.txt", "lost laptop", "security@example.org"),
        ("handbook/travel.txt", "approval", "dee"),
    ),
    actions_to_issues: (
        ("bo", ("fix the export",)),
        ("dee", ("book a room",)),
        ("ana", ("call the customer",)),
    ),
    finish_draft: (("launch.txt", " Try it."), ("prices.txt", " For all."), ("launch.txt", " From March on.")),
    buy: (("dee", "Kettle", 2), ("cem", "Pen", 30), ("bo", "Lamp shade", 4)),
    cheapest: (("floor", "Floor lamp"), ("pen", "Pen"), ("lamp", "Lamp shade")),
    refund_all: (("ana", "shipped", (9003,)), ("bo", "paid", (9006,)), ("cem", "paid", (9004,))),
    best_customer: (("bo", ("paid", "shipped")), ("cem", ("paid",)), ("dee", ("refunded",))),
    alert_at_peak: (("web.errors", "chat"), ("db.connections", "mail"), ("mail.sent", "phone")),
    alert_on_all: (
        ("web.", 500.0, ("web.latency_ms", "web.errors")),
        ("mail", 900.0, ("mail.sent",)),
        ("db.", 80.0, ("db.connections",)),
    ),
    quiet_and_tell: (
        ("queue.length", 30, "export", 102),
        ("db.disk_percent", 60, "notifications", 110),
        ("queue.length", 45, "map", 112),
    ),
}

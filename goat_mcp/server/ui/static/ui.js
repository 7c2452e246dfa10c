// Keeps a page up to date: it loads itself again after each change, and what a person is doing in it stays.
"use strict";

(() => {
  const live = document.body.dataset.live;
  const status = document.getElementById("live");
  let isLoading = false;
  let isAskedAgain = false;
  let isPressed = false;
  let pointer = null;
  let moved = ""; // the card that has just come under the pointer

  const keyOf = (field) => {
    const form = field.form;
    return `${form ? form.id || form.getAttribute("action") : ""}|${field.name}|${field.type}|${
      field.type === "checkbox" ? field.value : ""
    }`;
  };

  const fieldsOf = (root) => [...root.querySelectorAll("input:not([type=hidden]), textarea, select")];

  const isChanged = (field) => {
    if (field.type === "checkbox") return field.checked !== field.defaultChecked;
    if (field.tagName === "SELECT") return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.value !== field.defaultValue;
  };

  const pathTo = (element) => {
    if (element.id) return `#${CSS.escape(element.id)}`;
    const owner = element.closest("[id]");
    if (!owner) return "";
    const tag = element.tagName.toLowerCase();
    const place = [...owner.querySelectorAll(tag)].indexOf(element);
    return `#${CSS.escape(owner.id)}|${tag}|${place}`;
  };

  const found = (path) => {
    if (!path) return null;
    const [owner, tag, place] = path.split("|");
    const root = document.querySelector(owner);
    return root && tag ? root.querySelectorAll(tag)[Number(place)] || null : root;
  };

  // What a person has done in the page so far.
  const kept = (main) => {
    const active = main.contains(document.activeElement) && document.activeElement !== main ? document.activeElement : null;
    return {
      fields: fieldsOf(main).filter(isChanged).map((field) => [keyOf(field), field.checked, field.value]),
      details: [...main.querySelectorAll("details[id]")].map((one) => [one.id, one.open]),
      scrolled: [...main.querySelectorAll("pre")].filter((one) => one.scrollLeft || one.scrollTop)
        .map((one) => [pathTo(one), one.scrollLeft, one.scrollTop]),
      focus: active ? pathTo(active) : "",
      selection: active && typeof active.selectionStart === "number" ? [active.selectionStart, active.selectionEnd] : null,
    };
  };

  const restore = (main, before) => {
    const fields = new Map(fieldsOf(main).map((field) => [keyOf(field), field]));
    for (const [key, checked, value] of before.fields) {
      const field = fields.get(key);
      if (!field) continue;
      if (field.type === "checkbox") field.checked = checked;
      else field.value = value;
    }
    for (const [id, open] of before.details) {
      const one = document.getElementById(id);
      if (one) one.open = open;
    }
    for (const [path, left, top] of before.scrolled) {
      const one = found(path);
      if (one) one.scrollTo(left, top);
    }
    const active = found(before.focus);
    if (active) {
      active.focus({ preventScroll: true });
      if (before.selection && active.setSelectionRange) active.setSelectionRange(...before.selection);
    } else if (before.focus) {
      main.focus({ preventScroll: true });
    }
  };

  const countIn = (root) => {
    const count = root.querySelector("[data-count]");
    return count ? Number(count.dataset.count) : null;
  };

  // Read out by a screen reader; shown only if a person would not see it in the page.
  const say = (text, isShown = false) => {
    status.className = isShown ? "live" : "out-of-sight";
    status.textContent = text;
  };

  const announce = (before, after) => {
    if (after === null || before === after) return;
    say(after === 0 ? "Nothing waits for you." : `${after} ${after === 1 ? "waits" : "wait"} for you.`);
  };

  const titled = () => {
    const count = countIn(document);
    const title = document.title.replace(/^\(\d+\) /, "");
    document.title = count ? `(${count}) ${title}` : title;
  };

  // What waits is chosen by others, and so is when it is withdrawn: a press that is meant for one card must not count
  // for the next one, which takes its place.
  addEventListener("pointermove", (event) => { pointer = [event.clientX, event.clientY]; });
  const cardUnderPointer = () => {
    const under = pointer && document.elementFromPoint(...pointer);
    return under ? under.closest("article[id]")?.id ?? "" : "";
  };

  const show = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const main = document.getElementById("main");
    const next = fresh.getElementById("main");
    if (!next || main.dataset.shown === next.innerHTML) return;
    const before = kept(main);
    const under = cardUnderPointer();
    const count = countIn(main);
    const shown = next.innerHTML;
    main.replaceChildren(...next.childNodes);
    main.dataset.shown = shown;
    document.title = fresh.title;
    restore(main, before);
    const now = cardUnderPointer();
    if (under && now && now !== under) {
      moved = now;
      setTimeout(() => { moved = ""; }, 1000);
    }
    announce(count, countIn(main));
    titled();
    tick();
  };

  const load = async () => {
    if (isLoading || isPressed) {
      isAskedAgain = true;
      return;
    }
    isLoading = true;
    try {
      const answer = await fetch(location.href);
      if (answer.status === 401) location.reload();
      else if (answer.ok) show(await answer.text());
    } catch {
      // The server is gone; the stream says so.
    } finally {
      isLoading = false;
      if (isAskedAgain && !isPressed) {
        isAskedAgain = false;
        load();
      }
    }
  };

  // A button must not be replaced between the press and the click.
  addEventListener("pointerdown", () => { isPressed = true; });
  for (const name of ["pointerup", "pointercancel", "blur"]) {
    addEventListener(name, () => setTimeout(() => {
      isPressed = false;
      if (isAskedAgain) {
        isAskedAgain = false;
        load();
      }
    }, 50));
  }

  const inWords = (seconds) => {
    const s = Math.max(0, Math.round(seconds));
    if (s < 120) return `${s} s`;
    if (s < 7200) return `${Math.floor(s / 60)} min`;
    return s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`;
  };

  const tick = () => {
    const now = Date.now() / 1000;
    for (const time of document.querySelectorAll("time[data-since]")) {
      time.textContent = `${inWords(now - Number(time.dataset.since))} ago`;
    }
    for (const time of document.querySelectorAll("time[data-until]")) {
      const left = Number(time.dataset.until) - now;
      time.textContent = left > 0 ? `in ${inWords(left)}` : "now";
      if (left <= 0 && !time.dataset.over) {
        time.dataset.over = "yes";
        setTimeout(load, 300);
      }
    }
  };

  // A form is sent once, however often its button is pressed.
  addEventListener("submit", (event) => {
    const form = event.target;
    if (moved && form.closest("article[id]")?.id === moved) {
      event.preventDefault();
      say("What waits has just moved. Look again, then press.", true);
      return;
    }
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    setTimeout(() => { delete form.dataset.sent; }, 3000);
  });

  const first = document.getElementById("main");
  if (first) first.dataset.shown = first.innerHTML;
  titled();
  tick();
  setInterval(tick, 1000);
  if (live && "EventSource" in window) {
    const stream = new EventSource(live);
    let isLost = false;
    let polls = 0; // if the server has no stream left for this page
    stream.addEventListener("changed", load);
    // From here on the server counts changes: what changed before this page listened is loaded now.
    stream.addEventListener("ready", () => {
      if (isLost) say("");
      isLost = false;
      load();
    });
    stream.addEventListener("error", () => {
      isLost = true;
      say("The connection is lost. Run goat-mcp ui if it does not come back.", true);
      if (stream.readyState === EventSource.CLOSED && !polls) polls = setInterval(load, 5000);
    });
    addEventListener("pagehide", () => stream.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }
})();

// The workbench: keys, estimates, and words that are never lost. No dependency but the page's HTMX.
(() => {
  "use strict";
  const bench = document.getElementById("workbench");
  if (!bench) return;
  const status = document.getElementById("bench-status");
  const login = document.getElementById("bench-login");
  const store = `muniment:${bench.dataset.sheet}:`;
  const CHARACTERS_PER_TOKEN = 2.8; // As the server counts (sizing.py).
  // What asked in vain, and asks again after a log-in: forms (with the button that sent them),
  // buttons, panels.
  const waiting = new Map();
  // The card whose button sends all cards anew, and which button it was.
  let acted = null;

  const say = (text) => { status.textContent = text; };
  const forms = () => [...bench.querySelectorAll("form[data-draft]")];
  const values = (form) => Object.fromEntries(
    [...form.elements].filter((e) => e.name && e.name !== "csrfmiddlewaretoken" && e.type !== "submit")
      .map((e) => [e.name, e.type === "checkbox" ? e.checked : e.value]));
  const isChanged = (form) => form.dataset.began !== undefined &&
    form.dataset.began !== JSON.stringify({ ...values(form), ...why(form) });
  // Why alone is no change worth keeping.
  const why = (form) => Object.fromEntries(Object.keys(values(form)).filter((n) => n.endsWith("-why")).map((n) => [n, ""]));

  // ---- unsaved words live in this browser until they are saved or thrown away ----
  const keep = (form) => {
    const key = store + form.dataset.draft;
    if (isChanged(form)) {
      localStorage.setItem(key, JSON.stringify({
        values: values(form), name: form.dataset.name, card: form.dataset.card }));
    } else {
      localStorage.removeItem(key);
    }
  };
  const forget = (draft) => localStorage.removeItem(store + draft);

  const begin = (form) => {
    if (form.dataset.began !== undefined) return;
    estimate(form);
    if (form.querySelector(".m-conflict, .m-error")) {
      // What comes back unsaved is unsaved still, and holds what was written.
      form.dataset.began = "";
      keep(form);
      return;
    }
    form.dataset.began = JSON.stringify({ ...values(form), ...why(form) });
    const kept = localStorage.getItem(store + form.dataset.draft);
    if (kept && JSON.stringify({ ...JSON.parse(kept).values, ...why(form) }) !== form.dataset.began) {
      const bar = document.createElement("p");
      bar.className = "m-alarm";
      bar.append("You left unsaved words here. ");
      bar.append(button("Put them back", () => { put(form, JSON.parse(kept).values); bar.remove(); }));
      bar.append(button("Throw them away", () => { forget(form.dataset.draft); bar.remove(); }));
      form.prepend(bar);
    }
  };
  const put = (form, kept) => {
    for (const [name, value] of Object.entries(kept)) {
      const field = form.elements[name];
      if (!field) continue;
      if (field.type === "checkbox") field.checked = value; else field.value = value;
    }
    estimate(form);
    keep(form);
  };
  const button = (text, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "m-link";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  };
  const showDrafts = () => {
    const place = document.getElementById("bench-drafts");
    place.replaceChildren();
    for (const key of Object.keys(localStorage)) {
      if (!key.startsWith(store)) continue;
      const draft = JSON.parse(localStorage.getItem(key));
      const card = document.getElementById(draft.card);
      if (!card || card.querySelector("form[data-draft]")) continue;
      const line = document.createElement("p");
      line.className = "m-alarm";
      line.append(`Unsaved words of ${draft.name}. `);
      const edit = card.querySelector("[data-edit]");
      if (edit) line.append(button("Go on writing", () => { edit.click(); line.remove(); }));
      line.append(button("Throw them away", () => { localStorage.removeItem(key); line.remove(); }));
      place.append(line);
    }
  };

  const estimate = (form) => {
    for (const place of form.querySelectorAll("[data-tokens-of]")) {
      const field = document.getElementById(place.dataset.tokensOf);
      place.textContent = `About ${Math.ceil(field.value.length / CHARACTERS_PER_TOKEN)} tokens (an upper estimate).`;
    }
  };

  bench.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-draft]");
    if (form) { estimate(form); keep(form); }
  });
  window.addEventListener("beforeunload", (event) => {
    if (forms().some(isChanged)) event.preventDefault();
  });

  // ---- what the server answers ----
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const request = event.detail.xhr;
    if (new URL(request.responseURL, location.href).pathname.startsWith("/admin/login/")) {
      event.detail.shouldSwap = false;
      const { elt, triggeringEvent } = event.detail.requestConfig;
      waiting.set(elt, triggeringEvent && triggeringEvent.submitter);
      say("Your log-in has ended; nothing is lost.");
      if (!login.open) login.showModal();
    }
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    forms().forEach(begin);
    const card = event.detail.elt.closest ? event.detail.elt.closest(".m-card") : null;
    const now = card && document.getElementById(card.id);
    // Who has begun to write is left in peace.
    if (now && !(now.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"))) {
      const first = now.querySelector(".m-conflict, [aria-invalid=true], .m-error") ||
        now.querySelector("form[data-draft] :is(input, textarea, select):not([type=hidden])") || now;
      if (first.matches("p")) first.setAttribute("tabindex", "-1");
      first.focus();
    }
    if (acted && document.activeElement === document.body) {
      // Who moves a card stays with it, on the same button while it may be pressed again.
      const mine = document.getElementById(acted.card);
      const place = mine && (mine.querySelector(`[name=act][value=${acted.act}]:not(:disabled)`) || mine);
      if (place) place.focus();
      acted = null;
    }
  });
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, triggeringEvent } = event.detail.requestConfig;
    const pressed = triggeringEvent && triggeringEvent.submitter;
    const of = elt.closest(".m-card");
    if (of && pressed && pressed.name === "act") acted = { card: of.id, act: pressed.value };
    const form = event.target.closest("form[data-draft]");
    if (form && event.detail.requestConfig.verb === "post") { keep(form); say("Saving …"); }
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const config = event.detail.requestConfig;
    if (!event.detail.successful || !config || config.verb !== "post") return;
    // The form itself may have left the page with its card.
    const form = config.elt.closest("form[data-draft]");
    const isSaved = (event.detail.xhr.getResponseHeader("HX-Trigger") || "").includes("sheet-changed");
    if (isSaved && form) {
      forget(form.dataset.draft);
      delete form.dataset.began;
      // A form for something new stays, and is empty again.
      if (form.isConnected) form.reset();
    }
    if (isSaved) say("Saved."); else if (form) say("Not saved yet; see what the card says.");
  });
  document.body.addEventListener("htmx:sendError", () => {
    say("Not saved: there is no connection. Your words are kept in this browser; save again once it is back.");
  });
  document.body.addEventListener("htmx:responseError", (event) => {
    say(event.detail.xhr.status === 403
      ? "Not saved: you may not change this, or the page is too old; copy your words and load it anew."
      : "Not saved: the server had a fault. Your words are kept in this browser; save again.");
  });

  document.body.addEventListener("bench-says", (event) => say(event.detail.value));

  // ---- log in again in place ----
  login.querySelector("[data-close]").addEventListener("click", () => login.close());
  login.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const typed = new FormData(event.target);
    const address = "/admin/login/?next=" + encodeURIComponent(location.pathname);
    const token = await tokenAt(address);
    typed.set("csrfmiddlewaretoken", token);
    typed.set("next", location.pathname);
    const answer = await fetch(address, { method: "POST", body: new URLSearchParams(typed), credentials: "same-origin" });
    const isIn = !new URL(answer.url).pathname.startsWith("/admin/login/");
    login.querySelector(".m-error").hidden = isIn;
    if (!isIn) return;
    const fresh = tokenIn(await answer.text());
    document.querySelectorAll("input[name=csrfmiddlewaretoken]").forEach((field) => { field.value = fresh; });
    event.target.reset();
    login.close();
    say("You are in again.");
    const again = [...waiting].filter(([asked]) => asked.isConnected);
    waiting.clear();
    for (const [asked, submitter] of again) {
      if (asked.matches("form")) asked.requestSubmit(submitter);
      else if (asked.matches("button, a")) htmx.trigger(asked, "click");
    }
    // Panels ask by themselves when the sheet has changed.
    if (again.some(([asked]) => !asked.matches("form, button, a"))) htmx.trigger(document.body, "sheet-changed");
  });
  const tokenAt = async (address) => tokenIn(await (await fetch(address, { credentials: "same-origin" })).text());
  const tokenIn = (html) => new DOMParser().parseFromString(html, "text/html")
    .querySelector("input[name=csrfmiddlewaretoken]").value;

  // ---- keys ----
  const cards = () => [...bench.querySelectorAll(".m-card")];
  document.addEventListener("keydown", (event) => {
    const form = document.activeElement && document.activeElement.closest("form[data-draft]");
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      const target = form || forms().find(isChanged);
      if (target) target.requestSubmit();
      return;
    }
    const isWriting = document.activeElement && document.activeElement.matches("input, textarea, select");
    if (event.key === "Escape" && isWriting && form) {
      document.activeElement.blur();
      (form.closest(".m-card") || form).focus();
      return;
    }
    if (isWriting || login.open || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = document.activeElement ? document.activeElement.closest(".m-card") : null;
    if (event.key === "j" || event.key === "k") {
      const all = cards();
      const next = all[Math.min(all.length - 1, Math.max(0, all.indexOf(here) + (event.key === "j" ? 1 : -1)))];
      if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
    } else if (event.key === "e" && here) {
      const edit = here.querySelector("[data-edit]");
      if (edit) { event.preventDefault(); edit.click(); }
    }
  });

  forms().forEach(begin);
  showDrafts();
})();

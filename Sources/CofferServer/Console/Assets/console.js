// What pages do beyond what they do without it: they fetch what changed, say so, and put the focus where it helps.
"use strict";

const news = document.getElementById("news");
const mark = document.body.dataset.mark;

// A notice or a list of what was wrong is read first.
const first = document.querySelector("[data-focus]");
if (first) first.focus();

// The address no longer says that something was done, when the page is loaded again or kept.
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
}

// A link's secret stands behind the "#", so that no log has it. It goes into the form, and out of the address.
const holder = document.querySelector("[data-fragment] form");
if (holder && location.hash.length > 1) {
  const secret = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  if (secret.startsWith("coffer_invitation_")) {
    holder.elements.token.value = secret;
    holder.requestSubmit();
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    news.textContent = "Copied.";
  });
}

// Whether somebody is at work in a part of the page: then nothing is changed under their hands.
function isInUse(part) {
  if (part.contains(document.activeElement)) return true;
  return [...part.querySelectorAll("details")].some((details) => details.open);
}

function show(fresh) {
  let isChanged = false;
  let isKept = false;
  for (const part of document.querySelectorAll("[data-live]")) {
    const other = fresh.getElementById(part.id);
    if (!other || other.isEqualNode(part)) continue;
    if (isInUse(part)) {
      isKept = true;
    } else {
      part.replaceChildren(...document.adoptNode(other).childNodes);
      isChanged = true;
    }
  }
  if (isChanged) news.textContent = "The page was brought up to date.";
  if (isKept) offer();
}

// Asks instead of changing what somebody is reading or filling in.
function offer() {
  if (document.querySelector(".news")) return;
  const bar = document.createElement("div");
  bar.className = "news";
  const text = document.createElement("span");
  text.textContent = "Something changed meanwhile.";
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Load the page again";
  button.addEventListener("click", () => location.reload());
  bar.append(text, button);
  document.getElementById("main").append(bar);
  news.textContent = "Something changed meanwhile. A button at the end of the page loads it again.";
}

let isLooking = false;
let isDue = false;

function look() {
  if (isLooking) {
    isDue = true;
    return;
  }
  isLooking = true;
  const request = new XMLHttpRequest();
  request.open("GET", location.href);
  request.responseType = "document";
  request.setRequestHeader("X-Coffer-Refresh", "1");
  request.addEventListener("loadend", () => {
    // However much happens, a page asks once in a second.
    setTimeout(rest, 1000);
    if (request.status === 200 && request.response) {
      if (request.response.body.dataset.mark) show(request.response);
      else location.reload();
    }
  });
  request.send();
}

function rest() {
  isLooking = false;
  if (!isDue) return;
  isDue = false;
  look();
}

// One stream for the page that is seen: browsers allow few connections to one server.
let stream = null;
let seen = mark;

function listen() {
  if (document.hidden) {
    if (stream) stream.close();
    stream = null;
  } else if (!stream) {
    stream = new EventSource("/console/events?seen=" + encodeURIComponent(seen));
    stream.addEventListener("change", (event) => {
      seen = event.lastEventId;
      look();
    });
  }
}

if (mark && document.querySelector("[data-live]")) {
  document.addEventListener("visibilitychange", listen);
  listen();
}

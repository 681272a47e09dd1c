// Updates the page of a growing session: new lines appear, and the scroll position stays.
(() => {
'use strict';
const $ = id => document.getElementById(id);
const index = JSON.parse($('index').textContent);
const main = $('main'), parts = $('parts'), rail = $('rail'), notice = $('new-lines');
const key = 'threadline-seen ' + index.served + index.query;
const storage = { get: name => { try { return localStorage.getItem(name); } catch { return null; } }, set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* storage is unavailable */ } } };
const url = (what, ask) => `${index.served}/${what}?${new URLSearchParams([...new URLSearchParams(index.query), ...Object.entries(ask)])}`;
const lineOf = id => { const found = /^m(\d+)/.exec(id); return found ? +found[1] : 0; };

// Marks the first item that is new since the last visit.
const seen = +(storage.get(key) ?? 0);
function markNew(within) {
  if (!seen || $('new-marker')) return;
  for (const item of within.querySelectorAll('.i[id]')) {
    if (lineOf(item.id) <= seen || item.classList.contains('mark')) continue;
    const place = item.closest('details') ? item.closest('.items > *') ?? item : item;
    // The marker is correct only if the part with the last line seen has been drawn.
    const before = last(index.pieces, seen);
    if (before && !before.classList.contains('drawn')) return;
    const line = document.createElement('p');
    line.id = 'new-marker';
    line.className = 'new-marker';
    line.textContent = 'new since your last visit';
    place.before(line);
    return;
  }
}
function last(pieces, line) {
  for (let i = 0; i < pieces.length; i += 3) if (pieces[i + 1] <= line && line <= pieces[i + 2]) return find(pieces[i]);
  return null;
}
function find(name) { return parts.querySelector(`:scope > .piece[data-p="${CSS.escape(name)}"]`); }
function remember() { storage.set(key, index.last); }
addEventListener('pagehide', remember);
document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'hidden') remember(); });
main.addEventListener('drawn', event => markNew(event.detail));
markNew(parts);

// Outline: chunks far down are drawn when they come near the viewport.
const railNear = new IntersectionObserver(found => {
  for (const { target, isIntersecting } of found) if (isIntersecting) drawRail(target);
}, { root: rail, rootMargin: '600px 0px' });
async function drawRail(chunk) {
  railNear.unobserve(chunk);
  try {
    const answer = await fetch(url('outline', { number: chunk.dataset.r }));
    if (answer.ok) chunk.innerHTML = await answer.text();
    chunk.style.minHeight = '';
    main.dispatchEvent(new CustomEvent('changed', { detail: {} }));
  } catch { railNear.observe(chunk); }
}
function watchRail() {
  for (const chunk of rail.querySelectorAll(':scope > .chunk:empty')) {
    chunk.style.minHeight = '60rem';
    railNear.observe(chunk);
  }
}
watchRail();

// Sections that the user expanded stay expanded after a redraw.
const openIn = piece => [...piece.querySelectorAll('.i[id] > details[open]')].map(details => details.parentElement.id);
async function redraw(piece) {
  const open = new Set(openIn(piece));
  let answer;
  try { answer = await fetch(url('part', { name: piece.dataset.p })); } catch (error) { delete piece.dataset.v; throw error; }
  // A part that no longer exists is removed by the next change.
  if (!answer.ok) { delete piece.dataset.v; return; }
  const html = await answer.text();
  piece.innerHTML = html;
  piece.classList.add('drawn');
  piece.style.minHeight = '';
  for (const id of open) { const details = $(id)?.querySelector(':scope > details'); if (details) details.open = true; }
  piece.dataset.v = answer.headers.get('x-stamp') ?? piece.dataset.v;
  markNew(piece);
}

const atEnd = () => document.documentElement.scrollHeight - innerHeight - scrollY < 120;
const inView = piece => { const box = piece.getBoundingClientRect(); return box.bottom > -1600 && box.top < innerHeight + 1600; };
let unseen = 0;
function addUnseen(count) {
  unseen += count;
  notice.hidden = unseen === 0;
  notice.firstElementChild.textContent = unseen === 1 ? '1 new line ↓' : `${unseen} new lines ↓`;
}
notice.firstElementChild.addEventListener('click', () => { scrollTo({ top: document.documentElement.scrollHeight }); unseen = 0; addUnseen(0); });
addEventListener('scroll', () => { if (unseen && atEnd()) { unseen = 0; addUnseen(0); } }, { passive: true });

function spliced(list, change) { return change ? [...list.slice(0, change.from), ...change.rest] : list; }
let names = [...parts.children].map(piece => piece.dataset.p);
async function apply(change) {
  const following = atEnd(), before = index.last;
  if (change.parts) {
    const { from, rest } = change.parts;
    const known = new Map([...parts.children].map(piece => [piece.dataset.p, piece]));
    const wanted = [...names.slice(0, from), ...rest.map(([name]) => name)];
    const keep = new Set(wanted);
    for (const [name, piece] of known) if (!keep.has(name)) piece.remove();
    const redrawn = [];
    let above = from > 0 ? known.get(wanted[from - 1]) : null;
    for (const [name, stamp, , , rows] of rest) {
      let piece = known.get(name);
      if (!piece) {
        piece = document.createElement('div');
        piece.className = 'piece';
        piece.dataset.p = name;
        piece.dataset.rows = rows;
      }
      if ((above ? above.nextElementSibling : parts.firstElementChild) !== piece) { if (above) above.after(piece); else parts.prepend(piece); }
      above = piece;
      if (piece.dataset.v !== stamp) {
        const near = piece.classList.contains('drawn') || inView(piece);
        piece.dataset.v = stamp;
        if (near) redrawn.push(redraw(piece));
      }
    }
    names = wanted;
    const flat = rest.flatMap(([name, , first, end]) => [name, first, end]);
    index.pieces = [...index.pieces.slice(0, from * 3), ...flat];
    await Promise.all(redrawn);
  }
  index.turns = spliced(index.turns, change.turns);
  index.bad = spliced(index.bad, change.bad);
  index.tools = change.tools ?? index.tools;
  index.last = change.last ?? index.last;
  if (change.rail) {
    const stamps = change.rail.rest;
    while (rail.querySelectorAll(':scope > .chunk').length > change.rail.from + stamps.length) rail.querySelector(':scope > .chunk:last-of-type').remove();
    for (let i = 0; i < stamps.length; i++) {
      const number = change.rail.from + i;
      let chunk = rail.querySelector(`:scope > .chunk[data-r="${number}"]`);
      if (!chunk) {
        chunk = document.createElement('div');
        chunk.className = 'chunk';
        chunk.dataset.r = number;
        const end = [...rail.querySelectorAll(':scope > .chunk')].pop();
        if (end) end.after(chunk); else rail.prepend(chunk);
      }
      if (chunk.dataset.v === stamps[i]) continue;
      chunk.dataset.v = stamps[i];
      if (number < 2 || chunk.childElementCount || chunk.getBoundingClientRect().top < innerHeight) await drawRail(chunk);
    }
    watchRail();
  }
  if (change.stamp && change.stamp !== index.stamp) {
    index.stamp = change.stamp;
    try {
      const frame = await (await fetch(url('frame', {}))).json();
      $('opening').innerHTML = frame.opening;
      $('ending').innerHTML = frame.ending;
      $('live').hidden = !isLive;
    } catch { /* retried with the next change */ }
  }
  main.dispatchEvent(new CustomEvent('changed', { detail: { pieces: index.pieces, turns: index.turns, bad: index.bad, tools: index.tools, last: index.last } }));
  // The first change after loading only confirms the state of the page.
  if (following && index.last > before) scrollTo({ top: document.documentElement.scrollHeight });
  else if (index.last > before) addUnseen(index.last - before);
  main.dataset.line = index.last;
}

// Changes are applied one after the other. If one fails, the page reconnects and receives the full state,
// because a page that missed a change would stay out of date.
let queue = Promise.resolve();
let connection = null;
// The server decides whether the session is live.
let isLive = !$('live').hidden;
function reconnect(source, pause) {
  if (source !== connection) return;
  source.close();
  connection = null;
  setTimeout(connect, pause);
}
function report(isConnected) { document.dispatchEvent(new CustomEvent('connection', { detail: isConnected })); }
function connect() {
  if (connection) return;
  const source = connection = new EventSource(url('live', {}));
  source.addEventListener('open', () => report(true));
  source.addEventListener('error', () => {
    report(false);
    // EventSource reconnects by itself after network errors, but not after an HTTP error.
    if (source.readyState === EventSource.CLOSED) reconnect(source, 3000);
  });
  source.addEventListener('change', event => {
    const change = JSON.parse(event.data);
    queue = queue.then(() => source === connection && apply(change)).catch(() => reconnect(source, 500));
    if ('live' in change) {
      isLive = change.live;
      if ($('live')) $('live').hidden = !isLive;
    }
  });
  source.addEventListener('gone', event => {
    source.close();
    const gone = JSON.parse(event.data), note = document.createElement('p');
    note.className = 'error-message';
    note.id = 'gone';
    note.textContent = `${gone.message}: this page shows the last known state.`;
    if (!$('gone')) $('opening').prepend(note);
  });
}
connect();
// A page in the back/forward cache disconnects, so that the server can evict its session. It catches up when
// it is shown again.
addEventListener('pagehide', () => { connection?.close(); connection = null; });
addEventListener('pageshow', event => { if (event.persisted) connect(); });
main.dataset.line = index.last;
})();

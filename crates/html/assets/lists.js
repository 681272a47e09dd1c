// Home, search, usage and check. Every page works without this script. It applies filters immediately, keeps
// home up to date, searches while the user types, and handles keyboard shortcuts.
(() => {
'use strict';
const $ = id => document.getElementById(id);
const root = document.documentElement;
root.classList.add('js');

// Fetches a page and replaces parts of this one with it. A new request aborts the pending one.
let asked = null;
async function turn(href, parts, how) {
  if (asked) asked.abort();
  const mine = asked = new AbortController();
  let page;
  try {
    const answer = await fetch(href, { signal: mine.signal, headers: { accept: 'text/html' } });
    if (!answer.ok && answer.status !== 400) throw new Error(answer.statusText);
    page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch (problem) {
    if (asked === mine) asked = null;
    if (problem.name !== 'AbortError' && how !== 'quiet') say('Server not reachable');
    return false;
  }
  if (asked !== mine) return false;
  asked = null;
  if (how === 'push') history.pushState(null, '', href);
  if (how === 'replace') history.replaceState(null, '', href);
  for (const id of parts) {
    const here = $(id), there = page.getElementById(id);
    if (!here || !there) continue;
    const focused = here.contains(document.activeElement) && document.activeElement;
    // A form the user is typing in is not replaced; only its counts are updated.
    if (id === 'chooser' && focused) { counts(here, there); continue; }
    const at = focused && focused.href;
    here.replaceWith(there);
    if (at) for (const link of there.querySelectorAll('a')) if (link.href === at) { link.focus({ preventScroll: true }); break; }
  }
  const foot = page.querySelector('.foot');
  if (foot) document.querySelector('.foot').replaceWith(foot);
  document.title = page.title;
  fold();
  mark(hand && hand.dataset.id);
  return true;
}
function counts(here, there) {
  const old = here.querySelectorAll('.switches b, .projects b'), fresh = there.querySelectorAll('.switches b, .projects b');
  if (old.length === fresh.length) old.forEach((b, n) => { b.textContent = fresh[n].textContent; });
}
function say(text) { const said = $('said'); if (said) said.textContent = text; }

// Filters apply as soon as they change.
const home = document.querySelector('.home');
const parts = home ? ['shelf', 'chooser'] : ['main'];
function link(form) {
  const pairs = [...new FormData(form)].filter(([, value]) => value !== '');
  return form.getAttribute('action') + (pairs.length ? '?' + new URLSearchParams(pairs) : '');
}
async function choose(how) {
  if (await turn(link($('chooser')), parts, how)) say(($('count') || {}).textContent || '');
}
let pause = 0;
document.addEventListener('input', event => {
  const form = event.target.form;
  if (form && form.id === 'chooser' && event.target.type === 'search') { clearTimeout(pause); pause = setTimeout(() => choose('replace'), 120); }
  if (form && form.id === 'ask') { clearTimeout(pause); pause = setTimeout(find, 90); }
});
document.addEventListener('change', event => {
  const form = event.target.form;
  if (form && form.id === 'chooser' && event.target.type !== 'search') choose('push');
});
document.addEventListener('submit', event => {
  if (event.target.id === 'chooser') { event.preventDefault(); clearTimeout(pause); choose('push'); }
  if (event.target.id === 'ask') { event.preventDefault(); clearTimeout(pause); find(); }
});
// Links within the list replace only the list.
document.addEventListener('click', event => {
  const link = event.target.closest && event.target.closest('a');
  if (!home || !link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const to = new URL(link.href, location.href);
  if (to.origin !== location.origin || to.pathname !== '/' || link.closest('.top')) return;
  event.preventDefault();
  turn(to.pathname + to.search, parts, 'push').then(done => { if (done && link.closest('.pages')) scrollTo(0, 0); });
});
addEventListener('popstate', () => { if (home || $('ask')) location.reload(); });
// On narrow screens the filters start collapsed.
function fold() {
  const filters = document.querySelector('.chooser .fold');
  if (!filters) return;
  const chooser = filters.parentElement;
  chooser.classList.toggle('open', unfolded);
  filters.firstElementChild.addEventListener('click', event => { event.preventDefault(); unfolded = !unfolded; chooser.classList.toggle('open', unfolded); });
}
let unfolded = false;

// Searches while the user types.
async function find() {
  const form = $('ask');
  form.classList.add('waiting');
  const done = await turn(link(form), ['found'], 'replace');
  if (done) { form.classList.remove('waiting'); hand = null; say(($('count') || {}).textContent || ''); }
}

// Sessions that are being written move to the top, and counts appear as they are computed.
if ((home || document.querySelector('.counting')) && window.EventSource) {
  let late = 0;
  const refresh = () => {
    if (document.hidden) { late = -1; return; }
    if (late > 0) return;
    late = setTimeout(async () => {
      late = 0;
      if (!asked) await turn(location.pathname + location.search, parts, 'quiet');
      if (!home && !document.querySelector('.counting')) news.close();
    }, 150);
  };
  let news = null;
  const hearing = is => document.dispatchEvent(new CustomEvent('hearing', { detail: is }));
  const hear = () => {
    news = new EventSource('/events');
    news.addEventListener('open', () => hearing(true));
    news.addEventListener('error', () => {
      hearing(false);
      // EventSource reconnects by itself after network errors, but not after an HTTP error.
      if (news.readyState === EventSource.CLOSED) setTimeout(hear, 3000);
    });
    news.addEventListener('changed', event => {
      const page = document.querySelector('[data-news]');
      if (page && page.dataset.news !== event.data) refresh();
    });
  };
  hear();
  document.addEventListener('visibilitychange', () => { if (!document.hidden && late < 0) { late = 0; refresh(); } });
}

// Keyboard shortcuts.
let hand = null;
const rows = () => [...document.querySelectorAll('.s')].filter(row => row.getClientRects().length);
function take(row) {
  if (hand) hand.classList.remove('at-hand');
  hand = row;
  if (!row) return;
  row.classList.add('at-hand');
  const go = row.querySelector('.go');
  if (go) go.focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
function mark(id) {
  if (!id) return;
  const row = [...document.querySelectorAll('.s[data-id]')].find(row => row.dataset.id === id);
  if (hand && hand !== row) hand.classList.remove('at-hand');
  hand = row || null;
  if (row) row.classList.add('at-hand');
}
function step(by) {
  const all = rows();
  const at = all.indexOf(hand);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  if (all.length) take(all[next]);
}
function go(selector) { const link = document.querySelector(selector); if (link) link.click(); }
function theme() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  try { localStorage.setItem('threadline-theme', root.dataset.theme); } catch { /* storage is unavailable */ }
}
const help = $('help');
const keys = {
  j: () => step(1), n: () => step(1), k: () => step(-1), p: () => step(-1),
  '/': () => { const box = $('q'); if (box) { box.focus(); box.select(); } },
  f: () => {
    const chooser = $('chooser'); if (!chooser) return;
    unfolded = true; chooser.classList.add('open');
    const box = $('words') || chooser.querySelector('select, input'); if (box) box.focus();
  },
  x: () => go('#clear'), ']': () => go('.pages [rel="next"]'), '[': () => go('.pages [rel="prev"]'),
  s: () => { location.href = '/'; }, u: () => { location.href = '/usage'; },
  c: () => { if (hand && hand.dataset.id) location.href = '/s/' + encodeURIComponent(hand.dataset.id) + '/check'; },
  d: theme, '?': () => { if (help) help.showModal(); },
};
document.addEventListener('keydown', event => {
  const typing = event.target.closest && event.target.closest('input:not([type="checkbox"]), select, textarea');
  if (event.key === 'Escape') { if (typing) event.target.blur(); else take(null); return; }
  if (typing && event.target.id === 'q' && event.key === 'ArrowDown') { event.preventDefault(); step(1); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || (help && help.open)) return;
  const act = keys[event.key];
  if (act) { event.preventDefault(); act(); }
});
document.addEventListener('focusin', event => {
  const row = event.target.classList && event.target.classList.contains('go') && event.target.closest('.s');
  if (row && row !== hand) { if (hand) hand.classList.remove('at-hand'); hand = row; row.classList.add('at-hand'); }
});
for (const [id, act] of [['b-theme', theme], ['b-help', () => help && help.showModal()]]) {
  const button = $(id);
  if (button) { button.hidden = false; button.addEventListener('click', act); }
}
fold();
})();

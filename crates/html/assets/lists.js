// Home, search, usage and check. Every page works without this script. It applies filters immediately, keeps
// home up to date, searches while the user types, and handles keyboard shortcuts.
(() => {
'use strict';
const $ = id => document.getElementById(id);
const root = document.documentElement;
root.classList.add('js');

// Fetches a page and replaces parts of this one with it. A new request aborts the pending one.
let request = null;
async function replaceParts(href, parts, mode) {
  if (request) request.abort();
  const own = request = new AbortController();
  own.mode = mode;
  let page;
  try {
    const answer = await fetch(href, { signal: own.signal, headers: { accept: 'text/html' } });
    if (!answer.ok && answer.status !== 400) throw new Error(answer.statusText);
    page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch (problem) {
    if (request === own) request = null;
    if (problem.name !== 'AbortError' && mode !== 'quiet') announce('Server not reachable');
    return false;
  }
  if (request !== own) return false;
  request = null;
  if (mode === 'push') history.pushState(null, '', href);
  if (mode === 'replace') history.replaceState(null, '', href);
  for (const id of parts) {
    const here = $(id), there = page.getElementById(id);
    if (!here || !there) continue;
    const focused = here.contains(document.activeElement) && document.activeElement;
    // A form the user is typing in is not replaced; only its counts are updated.
    if (id === 'filters' && focused) { counts(here, there); continue; }
    // Neither is a list in which the user types a tag.
    if (mode === 'quiet' && focused && focused.closest('.tagger form')) continue;
    const at = focused && focused.href, labels = focused && focused.closest('.labels');
    here.replaceWith(there);
    if (labels) for (const fresh of there.querySelectorAll('.labels')) if (fresh.dataset.at === labels.dataset.at) fresh.querySelector('.pin').focus({ preventScroll: true });
    if (at) for (const link of there.querySelectorAll('a')) if (link.href === at) { link.focus({ preventScroll: true }); break; }
  }
  const foot = page.querySelector('.foot');
  if (foot) document.querySelector('.foot').replaceWith(foot);
  document.title = page.title;
  setUpFilters();
  showNewest();
  reselect(selected && selected.dataset.id);
  return true;
}
// A page that was requested before labels changed may show the old ones.
document.addEventListener('labels', () => {
  if (request && request.mode === 'quiet') replaceParts(location.pathname + location.search, parts, 'quiet');
});
function counts(here, there) {
  const old = here.querySelectorAll('.switches b, .projects b'), fresh = there.querySelectorAll('.switches b, .projects b');
  if (old.length === fresh.length) old.forEach((b, n) => { b.textContent = fresh[n].textContent; });
}
function announce(text) { const region = $('status-message'); if (region) region.textContent = text; }

// Filters apply as soon as they change.
const home = document.querySelector('.home');
const overview = document.querySelector('.overview');
const parts = home ? ['session-list', 'filters'] : ['main'];
function formUrl(form) {
  const pairs = [...new FormData(form)].filter(([, value]) => value !== '');
  return form.getAttribute('action') + (pairs.length ? '?' + new URLSearchParams(pairs) : '');
}
async function applyFilters(mode) {
  if (await replaceParts(formUrl($('filters')), parts, mode)) announce(($('count') || {}).textContent || '');
}
let pause = 0;
document.addEventListener('input', event => {
  const form = event.target.form;
  if (form && form.id === 'filters' && event.target.type === 'search') { clearTimeout(pause); pause = setTimeout(() => applyFilters('replace'), 120); }
  if (form && form.id === 'search-form') { clearTimeout(pause); pause = setTimeout(search, 90); }
});
document.addEventListener('change', event => {
  const form = event.target.form;
  if (form && form.id === 'filters' && event.target.type !== 'search') applyFilters('push');
  if (form && form.id === 'search-form' && event.target.name === 'sort') { clearTimeout(pause); search(); }
});
document.addEventListener('submit', event => {
  if (event.target.id === 'filters') { event.preventDefault(); clearTimeout(pause); applyFilters('push'); }
  if (event.target.id === 'search-form') { event.preventDefault(); clearTimeout(pause); search(); }
});
// Links within the list replace only the list.
document.addEventListener('click', event => {
  const link = event.target.closest && event.target.closest('a');
  if (!home || !link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const to = new URL(link.href, location.href);
  if (to.origin !== location.origin || to.pathname !== '/sessions' || link.closest('.top')) return;
  event.preventDefault();
  replaceParts(to.pathname + to.search, parts, 'push').then(done => { if (done && link.closest('.pages')) scrollTo(0, 0); });
});
addEventListener('popstate', () => { if (home || $('search-form')) location.reload(); });
// On narrow screens the filters start collapsed.
function setUpFilters() {
  const details = document.querySelector('.filters .fold');
  if (!details) return;
  const filters = details.parentElement;
  filters.classList.toggle('open', filtersOpen);
  details.firstElementChild.addEventListener('click', event => { event.preventDefault(); filtersOpen = !filtersOpen; filters.classList.toggle('open', filtersOpen); });
}
let filtersOpen = false;
// A chart that is wider than the screen starts at its newest end.
function showNewest() {
  for (const chart of document.querySelectorAll('svg.timeline')) {
    const box = chart.closest('.chart-scroller');
    box.scrollLeft = box.scrollWidth;
  }
}

// Searches while the user types.
async function search() {
  const form = $('search-form');
  form.classList.add('waiting');
  const done = await replaceParts(formUrl(form), ['results'], 'replace');
  if (done) { form.classList.remove('waiting'); selected = null; announce(($('count') || {}).textContent || ''); }
}

// Sessions that are being written move to the top, and counts appear as they are computed.
if ((home || overview || document.querySelector('.indexing')) && window.EventSource) {
  let timer = 0;
  const refresh = () => {
    if (document.hidden) { timer = -1; return; }
    if (timer > 0) return;
    timer = setTimeout(async () => {
      timer = 0;
      if (!request) await replaceParts(location.pathname + location.search, parts, 'quiet');
      if (!home && !overview && !document.querySelector('.indexing')) source.close();
    }, overview && !document.querySelector('.indexing') ? 2000 : 150);
  };
  let source = null;
  const report = isConnected => document.dispatchEvent(new CustomEvent('connection', { detail: isConnected }));
  const connect = () => {
    source = new EventSource('/events');
    source.addEventListener('open', () => report(true));
    source.addEventListener('error', () => {
      report(false);
      // EventSource reconnects by itself after network errors, but not after an HTTP error.
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
    });
    source.addEventListener('changed', event => {
      const page = document.querySelector('[data-news]');
      if (page && page.dataset.news !== event.data) refresh();
    });
  };
  connect();
  document.addEventListener('visibilitychange', () => { if (!document.hidden && timer < 0) { timer = 0; refresh(); } });
}

// Keyboard shortcuts.
let selected = null;
const rows = () => [...document.querySelectorAll('.s')].filter(row => row.getClientRects().length);
function select(row) {
  if (selected) selected.classList.remove('selected');
  selected = row;
  if (!row) return;
  row.classList.add('selected');
  const go = row.querySelector('.go');
  if (go) go.focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}
function reselect(id) {
  if (!id) return;
  const row = [...document.querySelectorAll('.s[data-id]')].find(row => row.dataset.id === id);
  if (selected && selected !== row) selected.classList.remove('selected');
  selected = row || null;
  if (row) row.classList.add('selected');
}
function moveSelection(by) {
  const all = rows();
  const at = all.indexOf(selected);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  if (all.length) select(all[next]);
}
function clickLink(selector) { const link = document.querySelector(selector); if (link) link.click(); }
const help = $('help');
const keys = {
  j: () => moveSelection(1), n: () => moveSelection(1), k: () => moveSelection(-1), p: () => moveSelection(-1),
  '/': () => { const box = $('q'); if (box) { box.focus(); box.select(); } },
  f: () => {
    const filters = $('filters'); if (!filters) return;
    filtersOpen = true; filters.classList.add('open');
    const box = $('words') || filters.querySelector('select, input'); if (box) box.focus();
  },
  x: () => clickLink('#clear'), ']': () => clickLink('.pages [rel="next"]'), '[': () => clickLink('.pages [rel="prev"]'),
  o: () => { location.href = '/'; }, s: () => { location.href = '/sessions'; }, u: () => { location.href = '/usage'; },
  c: () => { if (selected && selected.dataset.id) location.href = '/s/' + encodeURIComponent(selected.dataset.id) + '/check'; },
  '?': () => { if (help) help.showModal(); },
};
document.addEventListener('keydown', event => {
  const typing = event.target.closest && event.target.closest('input:not([type="checkbox"]), select, textarea');
  if (event.key === 'Escape') {
    if (typing) {
      // The browser would empty a search box.
      if (event.target.type === 'search') event.preventDefault();
      event.target.blur();
    } else select(null);
    return;
  }
  if (typing && event.target.id === 'q' && event.key === 'ArrowDown') { event.preventDefault(); moveSelection(1); return; }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || (help && help.open)) return;
  const act = keys[event.key];
  if (act) { event.preventDefault(); act(); }
});
document.addEventListener('focusin', event => {
  const row = event.target.classList && event.target.classList.contains('go') && event.target.closest('.s');
  if (row && row !== selected) { if (selected) selected.classList.remove('selected'); selected = row; row.classList.add('selected'); }
});
const helpButton = $('b-help');
if (helpButton) { helpButton.hidden = false; helpButton.addEventListener('click', () => help && help.showModal()); }
setUpFilters();
showNewest();
})();

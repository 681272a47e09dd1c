// Included in every page of the viewer: applies and toggles the theme, masks secrets, changes pins and tags, and
// reports when the server is unreachable.
(() => {
'use strict';
const root = document.documentElement;
try {
  const stored = localStorage.getItem('threadline-theme');
  if (stored === 'light' || stored === 'dark') root.dataset.theme = stored;
} catch { /* storage is unavailable */ }

// Lets a key do the same as a button in the header, unless the user types.
function bindKey(key, button) {
  document.addEventListener('keydown', event => {
    const typing = event.target.closest('input:not([type="checkbox"]), select, textarea, dialog[open]');
    if (event.key !== key || typing || event.ctrlKey || event.metaKey || event.altKey || button.disabled) return;
    event.preventDefault();
    button.click();
  });
}

// The page of a session has its own button, which exported pages have, too.
const theme = document.querySelector('header.top #b-theme');
if (theme) {
  theme.hidden = false;
  theme.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    try { localStorage.setItem('threadline-theme', root.dataset.theme); } catch { /* storage is unavailable */ }
  });
  bindKey('d', theme);
}

// The switch that masks secrets applies to all pages of the viewer, also to those in other tabs.
const mask = document.getElementById('b-mask');
if (mask) {
  const tabs = window.BroadcastChannel ? new BroadcastChannel('threadline-mask') : null;
  if (tabs) tabs.onmessage = () => location.reload();
  mask.hidden = false;
  mask.addEventListener('click', () => {
    const on = mask.getAttribute('aria-pressed') !== 'true';
    document.cookie = `threadline-mask=${on ? 1 : 0}; Path=/; SameSite=Strict`;
    if (tabs) tabs.postMessage(on);
    location.reload();
  });
  bindKey('m', mask);
}

// The page with net changes: expands and collapses all files, and opens the one that is linked to.
const files = [...document.querySelectorAll('details.file')];
const fold = document.querySelector('.file-list #b-fold');
if (fold) {
  const label = () => { fold.textContent = files.some(file => file.open) ? 'Collapse all' : 'Expand all'; };
  fold.hidden = false;
  fold.addEventListener('click', () => {
    const open = !files.some(file => file.open);
    for (const file of files) file.open = open;
    label();
  });
  for (const file of files) file.addEventListener('toggle', label);
  label();
}
if (files.length) {
  const openLinked = () => {
    const file = files.find(file => '#' + file.id === location.hash);
    if (file) { file.open = true; file.scrollIntoView(); }
  };
  addEventListener('hashchange', openLinked);
  addEventListener('beforeprint', () => { for (const file of files) file.open = true; });
  openLinked();
}

// Pins and tags: sends a change, and shows the new ones.
async function changeLabels(labels, change, focus) {
  let page = null;
  try {
    const answer = await fetch(labels.dataset.at + '?' + new URLSearchParams(change), { method: 'POST' });
    page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  } catch { /* the server does not answer */ }
  const fresh = page && page.querySelector('.labels');
  if (!fresh) {
    const message = page && page.querySelector('h1');
    labels.lastElementChild.textContent = message ? message.textContent : 'Server not reachable';
    return;
  }
  // An update of the page may have replaced the labels meanwhile.
  const shown = [...document.querySelectorAll('.labels')].find(here => here.dataset.at === labels.dataset.at);
  if (shown) shown.replaceWith(fresh);
  fresh.querySelector(focus).focus({ preventScroll: true });
  document.dispatchEvent(new Event('labels'));
}
document.addEventListener('click', event => {
  const button = event.target.closest && event.target.closest('.labels button[type="button"]');
  if (!button) return;
  const labels = button.closest('.labels');
  if (button.dataset.remove) changeLabels(labels, { remove: button.dataset.remove }, 'summary');
  else changeLabels(labels, { pin: button.getAttribute('aria-pressed') === 'true' ? 0 : 1 }, '.pin');
});
document.addEventListener('submit', event => {
  const labels = event.target.closest('.labels');
  if (!labels) return;
  event.preventDefault();
  const tag = event.target.elements.tag.value.trim();
  if (tag) changeLabels(labels, { add: tag }, 'summary');
});
document.addEventListener('toggle', event => {
  if (event.target.matches('.tagger[open]')) event.target.querySelector('input').focus({ preventScroll: true });
}, true);

// Shows a notice while a page that receives live updates is disconnected, because its content may be stale.
document.addEventListener('connection', event => {
  let notice = document.getElementById('offline');
  if (!notice) {
    notice = document.createElement('p');
    notice.id = 'offline';
    notice.setAttribute('role', 'status');
    document.body.append(notice);
  }
  notice.hidden = event.detail;
  notice.textContent = event.detail ? '' : 'Server not reachable; this page is not updated. If the server was restarted, open the URL it printed.';
});
})();

// The palette: Ctrl-K (or Cmd-K) opens it on every page of the viewer. It lists sessions, projects, files and
// commands while the user types, and is used with the keyboard alone.
(() => {
'use strict';
const button = document.getElementById('b-palette');
if (!button) return;
let dialog = null, box = null, list = null, status = null, options = [], active = -1, request = null;

function build() {
  dialog = document.createElement('dialog');
  dialog.id = 'palette';
  dialog.setAttribute('aria-label', 'Go to');
  box = document.createElement('input');
  Object.assign(box, { type: 'text', autocomplete: 'off', spellcheck: false, placeholder: 'Session, project, file or command' });
  for (const [name, value] of [['role', 'combobox'], ['aria-label', 'Go to'], ['aria-expanded', 'true'], ['aria-controls', 'palette-list'], ['aria-autocomplete', 'list']]) box.setAttribute(name, value);
  list = document.createElement('ul');
  list.id = 'palette-list';
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Matches');
  status = document.createElement('p');
  status.className = 'sr';
  status.setAttribute('role', 'status');
  dialog.append(box, list, status);
  document.body.append(dialog);
  box.addEventListener('input', () => find());
  box.addEventListener('keydown', keys);
  list.addEventListener('click', event => { const option = event.target.closest('[role=option]'); if (option) go(option); });
  dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => { if (request) request.abort(); });
}
function open() {
  if (!dialog) build();
  if (dialog.open) { dialog.close(); return; }
  box.value = '';
  dialog.showModal();
  box.focus();
  find();
}
async function find() {
  if (request) request.abort();
  const own = request = new AbortController();
  try {
    const answer = await fetch('/palette.json?' + new URLSearchParams({ q: box.value }), { signal: own.signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const lines = (await answer.text()).split('\n').filter(line => line);
    if (request === own) show(lines.map(line => JSON.parse(line)));
  } catch (problem) {
    if (problem.name !== 'AbortError') status.textContent = 'Server not reachable';
  }
}
function show(matches) {
  list.replaceChildren();
  options = matches.map((match, place) => {
    const option = document.createElement('li');
    option.id = 'palette-' + place;
    option.setAttribute('role', 'option');
    option.dataset.href = match.href;
    for (const [name, text] of [['kind', match.kind], ['label', match.label], ['detail', match.detail]]) {
      const part = document.createElement('span');
      part.className = name;
      part.textContent = text;
      option.append(part, ' ');
    }
    list.append(option);
    return option;
  });
  status.textContent = options.length === 1 ? '1 match' : options.length + ' matches';
  select(options.length ? 0 : -1);
}
function select(place) {
  if (options[active]) options[active].setAttribute('aria-selected', 'false');
  active = place;
  const option = options[active];
  if (!option) { box.removeAttribute('aria-activedescendant'); return; }
  option.setAttribute('aria-selected', 'true');
  box.setAttribute('aria-activedescendant', option.id);
  option.scrollIntoView({ block: 'nearest' });
}
function go(option) { dialog.close(); location.href = option.dataset.href; }
function keys(event) {
  const last = options.length - 1;
  const to = { ArrowDown: Math.min(active + 1, last), ArrowUp: Math.max(active - 1, 0), PageDown: Math.min(active + 8, last), PageUp: Math.max(active - 8, 0) }[event.key];
  if (to !== undefined && options.length) { event.preventDefault(); select(to); }
  if (event.key === 'Enter' && options[active]) { event.preventDefault(); go(options[active]); }
  // The shortcuts of the page do not apply here.
  event.stopPropagation();
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') { event.preventDefault(); dialog.close(); }
}
document.addEventListener('keydown', event => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === 'k') { event.preventDefault(); open(); }
});
button.hidden = false;
button.addEventListener('click', open);
})();

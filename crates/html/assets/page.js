(() => {
'use strict';
const $ = id => document.getElementById(id);
const root = document.documentElement, main = $('main'), rail = $('rail'), side = rail.closest('.side');
const index = JSON.parse($('index').textContent);
root.classList.add('js');
const storage = { get: key => { try { return localStorage.getItem(key); } catch { return null; } }, set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* storage is unavailable */ } } };

// Parts that are drawn on demand: several per compressed section, which is deflated and base64-encoded.
const inflated = new Map();
function inflateSection(name) {
  let text = inflated.get(name);
  if (!text) {
    text = inflate($(name).textContent);
    inflated.set(name, text);
    if (inflated.size > 24) inflated.delete(inflated.keys().next().value);
  }
  return text;
}
async function inflate(base64) {
  const raw = atob(base64), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))).text();
}
function last(list, fits) {
  let low = 0, high = list.length;
  while (low < high) { const middle = (low + high) >> 1; if (fits(list[middle])) low = middle + 1; else high = middle; }
  return low - 1;
}
// A served page fetches its parts; an exported page contains them.
const url = (what, ask) => `${index.served}/${what}?${new URLSearchParams([...new URLSearchParams(index.query), ...Object.entries(ask)])}`;
async function ask(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(answer.statusText);
  return answer;
}
async function part(number) {
  if (index.served) {
    const answer = await ask(url('part', { name: number }));
    return answer.text();
  }
  const section = last(index.starts, start => start <= number);
  const text = (await inflateSection('z' + section)).split('\0')[number - index.starts[section]];
  return text.slice(text.indexOf('\n') + 1);
}

// Deferred parts of the page, drawn when they come near the viewport.
const near = new IntersectionObserver(seen => {
  for (const { target, isIntersecting } of seen) if (isIntersecting) draw(target);
}, { rootMargin: '1600px 0px' });
const drawing = new WeakMap();
function draw(piece) {
  if (!drawing.has(piece)) {
    near.unobserve(piece);
    drawing.set(piece, part(piece.dataset.p).then(html => {
      piece.innerHTML = html;
      piece.classList.add('drawn');
      piece.style.minHeight = '';
      sections = null;
      watch(piece);
      main.dispatchEvent(new CustomEvent('drawn', { detail: piece }));
    }, () => { drawing.delete(piece); }));
  }
  return drawing.get(piece);
}
function watch(within) {
  for (const piece of within.querySelectorAll('.piece:not(.drawn)')) {
    piece.style.minHeight = 28 * piece.dataset.rows + 'px';
    near.observe(piece);
  }
  for (const code of within.querySelectorAll('.reply > .code, .resume')) addCopy(code);
  picture(within);
  colour(within);
}
// The elapsed time of running calls. It is counted from the time at which the server rendered the call.
const clock = elapsed => elapsed < 59500 ? `${Math.floor(elapsed / 1000)} s` : elapsed < 3600000 ? `${Math.floor(elapsed / 60000)} min ${String(Math.floor(elapsed / 1000) % 60).padStart(2, '0')} s` : `${Math.floor(elapsed / 3600000)} h ${String(Math.floor(elapsed / 60000) % 60).padStart(2, '0')} min`;
if (index.served) setInterval(() => {
  for (const call of main.querySelectorAll('.running')) {
    call.dataset.since ??= Date.now() - call.dataset.elapsed;
    call.textContent = 'running ' + clock(Date.now() - call.dataset.since);
  }
}, 1000);
// Images whose data is stored once, next to the raw lines of the log.
function picture(within) {
  for (const image of within.querySelectorAll('img[data-l]')) {
    image.src = `data:${image.dataset.kind};base64,${$('b' + image.dataset.l).textContent}`;
    image.removeAttribute('data-l');
  }
}

// Collapsible sections whose content is deferred.
const filling = new WeakMap();
function fill(details) {
  if (!filling.has(details)) {
    const number = details.dataset.b, from = details.dataset.src;
    const text = number !== undefined ? part(+number) : from !== undefined ? ask(from).then(answer => answer.text()) : null;
    filling.set(details, text === null ? Promise.resolve() : text.then(html => {
      const inside = document.createElement('div');
      inside.className = 'deferred';
      inside.innerHTML = html;
      details.append(inside);
      picture(inside);
      colour(inside);
    }));
  }
  return filling.get(details).then(() => { for (const code of details.querySelectorAll('.code')) addCopy(code); });
}
main.addEventListener('toggle', event => { if (event.target.open) fill(event.target); }, true);
function expand(details) { details.open = true; return fill(details); }

// Syntax highlighting of visible code. It uses CSS highlights, so the text nodes do not change.
const words = list => new Set(list.split(' '));
const braces = words('abstract as async await break case catch class const continue crate declare default defer delete do dyn else enum export extends extern false final finally fn for from func function go if impl implements import in instanceof interface is keyof let loop match mod move mut namespace new nil null of override package private protected pub public range readonly ref return self Self static struct super switch this throw throws trait true try type typeof undefined union unsafe use using var virtual void where while with yield');
const hashes = words('alias and as assert async await begin break case class continue def defmodule defp del do done echo elif else elsif end ensure esac except exit export False fi finally for foreach from function global if import in is lambda local module nil None nonlocal not or param pass raise require rescue return self set switch then trap True true false null try unless until when while with yield');
const tables = words('add all alter and as asc between by case column create default delete desc distinct do drop else elseif end exists false for foreign from function group having if in index inner insert into is join key left like limit local nil not null on or order outer primary references repeat return right select set table then true union unique until update values view when where while with');
const raw$ = String.raw;
const double = raw$`"(?:\\.|[^"\\\n])*"?`, single = raw$`'(?:\\.|[^'\\\n])*'?`, char = raw$`'(?:\\[^']*|[^'\\\n])'`, tick = '`(?:\\\\.|[^`\\\\])*`?';
const slashes = raw$`//[^\n]*|/\*.*?(?:\*/|$)`, number = raw$`\b(\d[\w.]*)`, name = raw$`([A-Za-z_$][\w$]*)`;
const lexer = (comment, string, keys) => ({ token: new RegExp(`(${comment})|(${string})|${number}|${name}`, 'gs'), keys });
const lexers = {
  script: lexer(slashes, `${double}|${single}|${tick}`, braces),
  brace: lexer(slashes, `${double}|${char}|${tick}`, braces),
  hash: lexer(raw$`(?<![\w$&\\])#[^\n]*`, `"""(?:.*?)(?:"""|$)|'''(?:.*?)(?:'''|$)|${double}|${single}`, hashes),
  table: lexer(raw$`--[^\n]*|/\*.*?(?:\*/|$)`, `${double}|${single}`, tables),
  tag: lexer('<!--.*?(?:-->|$)', double, words('')),
};
const languages = {};
for (const [kind, list] of Object.entries({
  script: 'js jsx ts tsx mjs cjs mts cts javascript typescript json jsonc json5 jsonl css scss less php dart groovy graphql',
  brace: 'rs rust go c h cc cpp cxx hpp c++ java kt kts kotlin scala swift cs csharp zig proto',
  hash: 'py python pyi sh bash zsh shell console ps1 powershell psm1 yaml yml toml rb ruby pl perl r ini cfg conf env make mk makefile dockerfile nix tf hcl ex exs elixir jl',
  table: 'sql lua hs haskell elm', tag: 'html htm xml svg vue svelte',
})) for (const language of list.split(' ')) languages[language] = lexers[kind];
const paints = CSS.highlights && ['comment', 'string', 'number', 'key'].map(kind => {
  const paint = new Highlight();
  CSS.highlights.set(kind, paint);
  return paint;
});
const painted = new Map();
const inView = paints && new IntersectionObserver(seen => {
  for (const { target, isIntersecting } of seen) if (isIntersecting) paintCode(target); else wipe(target);
}, { rootMargin: '300px 0px' });
const languageOf = code => Object.hasOwn(languages, code.dataset.lang.toLowerCase()) ? languages[code.dataset.lang.toLowerCase()] : null;
function colour(within) {
  if (paints) for (const code of within.querySelectorAll('.code[data-lang]')) if (languageOf(code)) inView.observe(code);
}
function wipe(code) {
  for (const [paint, range] of painted.get(code) ?? []) paint.delete(range);
  painted.delete(code);
}
function paintCode(code) {
  if (painted.has(code)) return;
  const { token, keys } = languageOf(code), ranges = [], diff = code.classList.contains('diff');
  painted.set(code, ranges);
  let left = 60000;
  // Each line of a diff is tokenized separately, after its sign.
  for (const element of code.querySelectorAll(diff ? 'pre > span' : 'pre:not(.nos)')) {
    const nodes = [], walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    let text = '';
    for (let node = walker.nextNode(); node; node = walker.nextNode()) { nodes.push([text.length, node]); text += node.data; }
    token.lastIndex = diff ? 1 : 0;
    for (let found = token.exec(text); found && found.index < left; found = token.exec(text)) {
      const kind = found[1] !== undefined ? 0 : found[2] !== undefined ? 1 : found[3] !== undefined ? 2 : keys.has(keys === tables ? found[4].toLowerCase() : found[4]) ? 3 : -1;
      if (kind < 0) continue;
      const end = found.index + found[0].length;
      const a = nodes[last(nodes, ([start]) => start <= found.index)], b = nodes[last(nodes, ([start]) => start < end)];
      const range = new StaticRange({ startContainer: a[1], startOffset: found.index - a[0], endContainer: b[1], endOffset: end - b[0] });
      paints[kind].add(range);
      ranges.push([paints[kind], range]);
    }
    left -= text.length;
    if (left <= 0) return;
  }
}

// Anchors: every item can be linked to, drawn or not.
const lineOf = id => { const found = /^m(\d+)/.exec(id); return found ? +found[1] : 0; };
const agentOf = id => {
  const found = /^a-(.*)-m\d+(\.\d+)?$/s.exec(id);
  return found && Object.hasOwn(index.agents, found[1]) ? found[1] : null;
};
async function find(id) {
  let found = $(id);
  if (found) return found;
  const agent = agentOf(id);
  if (agent !== null) {
    // A sub-agent that no call started has its own collapsible section.
    const call = index.agents[agent] ? await find(index.agents[agent]) : $('a-' + agent);
    const details = call && (call.tagName === 'DETAILS' ? call : call.querySelector('details'));
    if (details) await expand(details);
    // A served page fetches the turns of a sub-agent when its section is expanded.
    for (const inside of call?.querySelectorAll('details.inside') ?? []) {
      if (!$(id) && new URL(inside.dataset.src, location.href).searchParams.get('agent') === agent) await expand(inside);
    }
    return $(id) ?? call;
  }
  const line = lineOf(id);
  for (let depth = 0; line && depth < 4 && !found; depth++) {
    for (let i = 0; i < index.pieces.length && !found; i += 3) {
      if (index.pieces[i + 1] > line || index.pieces[i + 2] < line) continue;
      const piece = document.querySelector(`.piece[data-p="${index.pieces[i]}"]:not(.drawn)`);
      if (piece) { await draw(piece); found = $(id); }
    }
  }
  // A result is shown with its call, and some lines are not shown at all. Both resolve to the nearest item
  // that precedes them.
  if (!found && line) {
    let [before, from] = [-1, 0];
    for (let i = 0; i < index.pieces.length; i += 3) if (index.pieces[i + 1] <= line && index.pieces[i + 1] >= from) [before, from] = [i, index.pieces[i + 1]];
    const piece = before < 0 ? null : document.querySelector(`.piece[data-p="${index.pieces[before]}"]:not(.drawn)`);
    if (piece) await draw(piece);
    let best = 0;
    for (const item of document.querySelectorAll('main .i[id]')) {
      const at = lineOf(item.id);
      if (at > best && at <= line) [best, found] = [at, item];
    }
  }
  return found;
}
let here = null;
async function reveal(id, quiet) {
  const found = await find(id);
  if (!found) return null;
  const own = found.classList.contains('i') && found.querySelector(':scope > details');
  if (own && !found.classList.contains('head')) await expand(own);
  for (let above = found.parentElement; above; above = above.parentElement) if (above.tagName === 'DETAILS' && !above.open) await expand(above);
  if (!found.getClientRects().length) showAll();
  if (here) here.classList.remove('here');
  here = found;
  if (found.classList.contains('i')) found.classList.add('here');
  if (!quiet) keepInView(found, () => found.scrollIntoView({ block: 'start' }));
  return found;
}
// Scrolls to an element or a range. Drawing nearby parts can move it, so it is scrolled to again until the
// layout has settled or the user scrolls.
const SETTLED_FRAMES = 12;
let scrollTarget = null;
function keepInView(target, scroll) {
  scrollTarget = target;
  let top = null, frames = 0;
  const step = () => {
    if (scrollTarget !== target || !(target.startContainer ?? target).isConnected) return;
    const now = target.getBoundingClientRect().top;
    if (top === null || Math.abs(now - top) > 1) {
      scroll();
      top = target.getBoundingClientRect().top;
      frames = 0;
    } else if (++frames > SETTLED_FRAMES) { scrollTarget = null; return; }
    requestAnimationFrame(step);
  };
  step();
}
// Scrolls a range to the middle of the viewport, and of every scrollable element around it.
function centreRange(range) {
  for (let above = range.startContainer.parentElement; above && above !== document.body; above = above.parentElement) {
    if (above.scrollHeight <= above.clientHeight + 1 && above.scrollWidth <= above.clientWidth + 1) continue;
    const box = above.getBoundingClientRect(), found = range.getBoundingClientRect();
    if (found.top < box.top || found.bottom > box.bottom) above.scrollTop += (found.top + found.bottom - box.top - box.bottom) / 2;
    if (found.left < box.left || found.right > box.right) above.scrollLeft += (found.left + found.right - box.left - box.right) / 2;
  }
  const found = range.getBoundingClientRect();
  scrollBy({ top: (found.top + found.bottom - innerHeight) / 2, behavior: 'instant' });
}
function goTo(id) {
  jumpTarget = numberOf.get(id) ?? null;
  history.replaceState(null, '', '#' + encodeURIComponent(id));
  return reveal(id);
}
const hashId = () => {
  const id = location.hash.slice(1);
  try { return decodeURIComponent(id); } catch { return id; }
};
const fromHash = () => {
  const id = hashId();
  if (id && id !== 'main') reveal(id);
};
addEventListener('hashchange', fromHash);
document.addEventListener('click', event => {
  const link = event.target.closest('a[href^="#"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const href = link.getAttribute('href').slice(1);
  if (href === 'main') return;
  event.preventDefault();
  side.classList.remove('open');
  railButton();
  if (link.classList.contains('next-error')) stepBad(1);
  else if (event.target.closest('.m.bad')) firstBadOf(href);
  else goTo(href);
});

// The current turn.
let numberOf = new Map(index.turns.map((anchor, i) => [anchor, i]));
let sections = null, current = -1, jumpTarget = null;
function place() {
  sections ??= [...main.querySelectorAll(':scope > .turn, :scope > .piece > .turn, :scope > #parts > .piece > .turn')];
  const at = last(sections, section => section.getBoundingClientRect().top < 70);
  const now = jumpTarget ?? (at < 0 ? -1 : numberOf.get(sections[at].dataset.a) ?? -1);
  if (now === current) return;
  current = now;
  if (index.large) labelFold();
  rail.querySelector('[aria-current]')?.removeAttribute('aria-current');
  const link = now >= 0 && rail.querySelector(`a[href="#${CSS.escape(index.turns[now])}"]`);
  if (link) {
    link.setAttribute('aria-current', 'true');
    const box = rail.getBoundingClientRect(), line = link.getBoundingClientRect();
    if (line.top < box.top || line.bottom > box.bottom) rail.scrollTop += line.top - box.top - box.height / 3;
  }
}
let waiting = false;
addEventListener('scroll', () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; place(); });
}, { passive: true });
// The last target of a keyboard jump counts as current until the user scrolls, because the last turns of a
// page cannot be scrolled to the top.
for (const moved of ['wheel', 'touchmove', 'pointerdown']) addEventListener(moved, () => { jumpTarget = scrollTarget = null; }, { passive: true });
function jump(by) {
  place();
  if (!index.turns.length) return;
  jumpTarget = Math.min(Math.max(current + by, 0), index.turns.length - 1);
  goTo(index.turns[jumpTarget]).then(place);
}
// Goes to the next or the previous error, in the order of the conversation.
function stepBad(by) {
  const errors = index.bad, known = here ? errors.indexOf(here.id) : -1;
  if (!errors.length) { announce('No errors'); return; }
  const from = here ? order(here.id) : current >= 0 ? order(index.turns[current]) : 0;
  let next = (known + by + errors.length) % errors.length;
  if (known < 0) next = by > 0 ? Math.max(errors.findIndex(id => order(id) >= from), 0) : errors.findLastIndex(id => order(id) < from);
  goTo(errors.at(next));
  announce(`Error ${(next + errors.length) % errors.length + 1} of ${errors.length}`);
}
// Goes to the first error of a turn.
function firstBadOf(anchor) {
  const turn = numberOf.get(anchor), start = order(anchor), end = turn + 1 < index.turns.length ? order(index.turns[turn + 1]) : Infinity;
  const first = index.bad.find(id => order(id) >= start && order(id) < end);
  goTo(first ?? anchor);
}

// Search over the whole page, drawn or not.
const q = $('q'), hitsOut = $('hits');
let hits = [], hit = -1, run = 0;
function order(id) {
  const agent = agentOf(id);
  return agent === null ? lineOf(id) : order(index.agents[agent]) + lineOf(id.slice(agent.length + 3)) * 1e-7 + 1e-4;
}
function count(text, needle) {
  let n = 0;
  for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, at + needle.length)) n++;
  return n;
}
function plain(html) {
  return html.replace(/<[^>]*>/g, '').replace(/&(lt|gt|quot|#39|amp);/g, (_, name) => ({ lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' })[name]);
}
function searchDrawn(needle, found) {
  const texts = new Map();
  const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (index.large && node.parentElement.closest('.drawn, .late')) continue;
    const item = node.parentElement.closest('.i[id]');
    if (item) texts.set(item.id, (texts.get(item.id) ?? '') + node.data);
  }
  for (const [id, text] of texts) {
    const n = count(text.toLowerCase(), needle);
    if (n) found.set(id, (found.get(id) ?? 0) + n);
  }
}
function searchPart(text, needle, found) {
  const cut = text.indexOf('\n');
  let id = text.slice(0, cut), from = cut + 1;
  const note = to => {
    const n = id && count(plain(text.slice(from, to)).toLowerCase(), needle);
    if (n) found.set(id, (found.get(id) ?? 0) + n);
  };
  for (const name of text.matchAll(/ id="((?:m\d|a-)[^"]*)"/g)) { note(name.index); id = plain(name[1]); from = name.index; }
  note(text.length);
}
async function search() {
  const mine = ++run, needle = q.value.trim().toLowerCase();
  hits = []; hit = match = -1; matches = [];
  CSS.highlights?.delete('hit');
  CSS.highlights?.delete('current-hit');
  $('b-prev').hidden = $('b-next').hidden = true;
  if (!needle) { showCount(''); return; }
  if (index.served) return searchServed(mine);
  const found = new Map();
  searchDrawn(needle, found);
  for (let i = 0; i < index.starts.length; i++) {
    const text = await inflate($('z' + i).textContent);
    if (mine !== run) return;
    for (const part of text.split('\0')) searchPart(part, needle, found);
    if (i % 16 === 15) showCount(found.size + ' …');
  }
  hits = [...found.keys()].map(id => [order(id), id]).sort((a, b) => a[0] - b[0]).map(([, id]) => id);
  showHits();
}
// Shows a short count, and explains it in the tooltip and to screen readers.
function showCount(short, meaning = short) {
  hitsOut.textContent = short;
  hitsOut.title = meaning;
  hitsOut.setAttribute('aria-label', meaning);
}
function showHits() {
  showCount(hits.length ? `${hits.length}` : 'none', hits.length === 1 ? '1 block with matches' : `${hits.length || 'No'} blocks with matches`);
  $('b-prev').hidden = $('b-next').hidden = !hits.length;
}
async function searchServed(mine) {
  let found = [];
  try { found = (await (await ask(url('find', { q: q.value.trim() }))).json()).hits; } catch { /* shown as no match */ }
  if (mine !== run) return;
  hits = found;
  showHits();
}
// The texts to highlight: the words and phrases of a query in a served page, the text as typed in an exported one.
function terms(query) {
  if (!index.served) return [query.trim().toLowerCase()];
  const words = query.match(/(?<!\S)-?(?:\w+:)?(?:"(?:[^"\\]|\\.)*"|\S+)/g) ?? [];
  return words.filter(word => !/^-|^\w+:|^\//.test(word)).map(word => word.replace(/^"|"$/g, '').toLowerCase()).filter(Boolean);
}
// The matches in the current block, in order, and the current one.
let matches = [], match = -1;
async function goHit(by) {
  if (!hits.length) return;
  if (match >= 0 && matches[match + by]?.startContainer.isConnected) return showMatch(match + by);
  const from = current >= 0 ? lineOf(index.turns[current]) : 0;
  const next = hit < 0 && by > 0 ? Math.max(hits.findIndex(id => order(id) >= from), 0) : (hit + by + hits.length) % hits.length;
  return openHit(next, by < 0 ? 'last' : 'first');
}
// Returns the first match of the shortest part of a block that contains as many of the terms as possible.
const WINDOW = 600;
function densest() {
  let best = 0, most = 0, shortest = 0;
  matches.forEach((first, i) => {
    const found = new Set();
    let length = 0;
    for (let k = i; k < matches.length && matches[k].at < first.at + WINDOW; k++) {
      if (!found.has(matches[k].term)) length = matches[k].at - first.at;
      found.add(matches[k].term);
    }
    if (found.size > most || (found.size === most && length < shortest)) [best, most, shortest] = [i, found.size, length];
  });
  return best;
}
// Opens a block with matches, and goes to its first, last or best match.
async function openHit(number, start) {
  hit = number;
  const mine = run, item = await reveal(hits[hit], true);
  if (mine !== run) return;
  matches = item ? terms(q.value).flatMap(term => rangesIn(item, term)).sort((a, b) => a.compareBoundaryPoints(Range.START_TO_START, b)) : [];
  // The summary of an expanded block repeats its content.
  const inBody = matches.filter(range => !range.startContainer.parentElement.closest('summary'));
  if (inBody.length) matches = inBody;
  CSS.highlights?.set('hit', new Highlight(...matches));
  if (matches.length) return showMatch(start === 'last' ? matches.length - 1 : start === 'best' ? densest() : 0);
  match = -1;
  showCount(`${hit + 1} of ${hits.length}`, `Block ${hit + 1} of ${hits.length} with matches`);
  if (item) keepInView(item, () => item.scrollIntoView({ block: 'start' }));
}
async function showMatch(number) {
  match = number;
  const range = matches[match];
  showCount(`${hit + 1} of ${hits.length}` + (matches.length > 1 ? ` (${match + 1}/${matches.length})` : ''),
    `Block ${hit + 1} of ${hits.length} with matches; match ${match + 1} of ${matches.length} in this block`);
  CSS.highlights?.set('current-hit', new Highlight(range));
  const first = range.startContainer.parentElement;
  for (let above = first; above && above !== main; above = above.parentElement) if (above.tagName === 'DETAILS' && !above.open && !first.closest('summary')) await expand(above);
  keepInView(range, () => centreRange(range));
}
function rangesIn(item, needle) {
  const ranges = [], nodes = [];
  let text = '';
  const walker = document.createTreeWalker(item, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) { nodes.push([text.length, node]); text += node.data.toLowerCase(); }
  for (let at = text.indexOf(needle); needle && at >= 0 && ranges.length < 500; at = text.indexOf(needle, at + needle.length)) {
    const range = new Range(), end = at + needle.length;
    const a = nodes[last(nodes, ([start]) => start <= at)], b = nodes[last(nodes, ([start]) => start < end)];
    if (at - a[0] > a[1].length || end - b[0] > b[1].length) continue;
    range.setStart(a[1], at - a[0]);
    range.setEnd(b[1], end - b[0]);
    [range.at, range.term] = [at, needle];
    ranges.push(range);
  }
  return ranges;
}
let typing = 0;
q.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(search, 150); });
$('find').addEventListener('submit', event => event.preventDefault());
q.addEventListener('keydown', async event => {
  if (event.key === 'Enter') {
    event.preventDefault();
    if (typing) { clearTimeout(typing); typing = 0; if (!hits.length) await search(); }
    goHit(event.shiftKey ? -1 : 1);
  } else if (event.key === 'Escape') {
    // The browser would empty the field.
    event.preventDefault();
    q.blur();
  }
});
$('b-prev').addEventListener('click', () => goHit(-1));
$('b-next').addEventListener('click', () => goHit(1));

// Filters.
const kinds = [...document.querySelectorAll('.kind-b')], tool = $('tool'), stylesheet = document.styleSheets[0];
function kind(button, on) {
  button.setAttribute('aria-pressed', on);
  root.classList.toggle('no-' + button.dataset.k, !on);
}
for (const button of kinds) button.addEventListener('click', () => kind(button, button.getAttribute('aria-pressed') !== 'true'));
function listTools() {
  const chosen = tool.value;
  while (tool.options.length > 2) tool.remove(2);
  index.tools.map(([name, n], i) => [name, n, i]).sort((a, b) => b[1] - a[1]).forEach(([name, n, i]) => tool.add(new Option(`${name}  ${n}`, i)));
  tool.value = chosen;
}
listTools();
// Hooks and similar events are hidden unless the user enables them.
const events = kinds.find(button => button.dataset.k === 'event');
if (events && storage.get('threadline-events') !== 'on') kind(events, false);
events?.addEventListener('click', () => storage.set('threadline-events', events.getAttribute('aria-pressed') === 'true' ? 'on' : 'off'));
let rules = 0;
function onlyTool() {
  while (rules) { stylesheet.deleteRule(stylesheet.cssRules.length - 1); rules--; }
  root.classList.toggle('only-bad', tool.value === 'bad');
  if (tool.value !== '' && tool.value !== 'bad') {
    const n = +tool.value;
    for (const rule of [`main > .turn:not([data-tools~="${n}"]), .piece > .turn[data-tools]:not([data-tools~="${n}"]) { display: none; }`,
      `main :is(.turn, .piece) .items > :not([data-t="${n}"], .piece, :has([data-t="${n}"])), main .items > .piece > :not([data-t="${n}"], :has([data-t="${n}"])) { display: none; }`]) {
      stylesheet.insertRule(rule, stylesheet.cssRules.length);
      rules++;
    }
  }
}
tool.addEventListener('change', onlyTool);
// A link can select the errors.
if (new URLSearchParams(location.search).get('only') === 'bad') {
  tool.value = 'bad';
  onlyTool();
  if (!location.hash) stepBad(1);
}
function showAll() {
  for (const button of kinds) kind(button, true);
  tool.value = '';
  onlyTool();
}
// Expands or collapses everything, or only the current turn of a large session.
function foldable() {
  const turn = index.turns[Math.max(current, 0)];
  const within = index.large ? (sections ?? []).filter(section => section.dataset.a === turn) : [main];
  return within.flatMap(section => [...section.querySelectorAll('.i > details')]);
}
function labelFold() {
  const all = foldable(), isExpanded = all.length > 0 && all.every(details => details.open);
  $('b-fold').textContent = `${isExpanded ? 'Collapse' : 'Expand'} ${index.large ? 'turn' : 'all'}`;
  $('b-fold').setAttribute('aria-pressed', isExpanded);
}
$('b-fold').textContent = index.large ? 'Expand turn' : 'Expand all';
$('b-fold').addEventListener('click', toggleAll);
function toggleAll() {
  place();
  const all = foldable(), expand = all.some(details => !details.open);
  for (const details of all) details.open = expand;
  labelFold();
}

// Copy buttons and the actions of an item.
function announce(text) { $('status-message').textContent = text; }
async function copy(text, button) {
  try { await navigator.clipboard.writeText(text); }
  catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  const label = button.textContent;
  button.textContent = 'Copied';
  announce('Copied');
  setTimeout(() => { button.textContent = label; }, 1200);
}
function makeButton(label, act) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = label;
  button.addEventListener('click', event => { event.stopPropagation(); act(button); });
  return button;
}
function addCopy(code) {
  if (code.querySelector(':scope > .copy')) return;
  const button = makeButton('Copy', button => copy(code.querySelector('pre:not(.nos)').textContent, button));
  button.className = 'copy';
  code.append(button);
}
const ops = document.createElement('span');
ops.className = 'ops';
let hovered = null;
ops.append(makeButton('Copy', button => {
  const copied = hovered.cloneNode(true);
  for (const extra of copied.querySelectorAll('.ops, .at, .cost, .copy, .margin, .no')) extra.remove();
  copy(copied.textContent.trim(), button);
}));
if (index.raw) ops.append(makeButton('Raw', () => rawOf(hovered)));
function showActions(event) {
  const item = event.target.closest?.('.i[id]');
  if (!item || item === hovered || item.classList.contains('mark')) return;
  hovered = item;
  item.append(ops);
}
main.addEventListener('pointerover', showActions);
main.addEventListener('focusin', showActions);

// Raw lines of the log.
const raw = $('raw'), rawText = raw.querySelector('pre');
let shown = null, unformatted = false;
async function rawLine(log, number) {
  if (index.served) {
    try { return await (await ask(url('raw', log ? { line: number, agent: log } : { line: number }))).text(); } catch { return null; }
  }
  const sections = index.raw[log];
  const at = sections ? last(sections, ([, first]) => first <= number) : -1;
  if (at < 0) return null;
  const lines = (await inflateSection('r' + sections[at][0])).split('\n').filter(line => line.startsWith(number + ' ') || line.startsWith(number + ':'));
  return lines.length ? lines.map(withAttachments).join('\n') : null;
}
// Base64 data is stored once, outside of the line: '12:40=0,95=0 …' lists offset=attachment pairs.
function withAttachments(line) {
  const space = line.indexOf(' '), text = line.slice(space + 1), parts = [];
  let from = 0;
  for (const attachment of line.slice(0, space).split(':')[1]?.split(',') ?? []) {
    const [at, number] = attachment.split('=').map(Number);
    parts.push(text.slice(from, at), $('b' + number).textContent);
    from = at;
  }
  return parts.join('') + text.slice(from);
}
function rawOf(item) {
  if (!item || !index.raw) return;
  const agent = agentOf(item.id);
  openRaw(agent ?? '', agent === null ? lineOf(item.id) : lineOf(item.id.slice(agent.length + 3)));
}
async function openRaw(log, number) {
  const text = await rawLine(log, number);
  if (text === null) { announce('Line not found'); return; }
  shown = { log, number, text };
  $('raw-h').textContent = 'Line ' + number + (log ? ' of agent ' + log : '');
  setRaw();
  if (!raw.open) raw.showModal();
  rawText.scrollTop = 0;
}
function setRaw() {
  let text = shown.text;
  if (!unformatted) try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* keep it unchanged */ }
  rawText.textContent = text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, ch => `<U+${ch.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}>`);
  $('raw-form').setAttribute('aria-pressed', unformatted);
}
async function stepRaw(by) {
  for (let number = shown.number + by, tries = 0; number > 0 && tries < 50; number += by, tries++) {
    if (await rawLine(shown.log, number) !== null) return openRaw(shown.log, number);
  }
}
$('raw-prev').addEventListener('click', () => stepRaw(-1));
$('raw-next').addEventListener('click', () => stepRaw(1));
$('raw-form').addEventListener('click', () => { unformatted = !unformatted; setRaw(); });
$('raw-copy').addEventListener('click', event => copy(shown.text, event.target));
$('raw-close').addEventListener('click', () => raw.close());

// Theme, outline, help and keyboard shortcuts.
const stored = storage.get('threadline-theme');
if (stored === 'light' || stored === 'dark') root.dataset.theme = stored;
function theme() {
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  storage.set('threadline-theme', root.dataset.theme);
}
$('b-theme').addEventListener('click', theme);
const wide = matchMedia('(min-width: 64rem)');
function railButton() { $('b-rail').setAttribute('aria-expanded', side.classList.contains('open')); }
function outline() {
  if (wide.matches) root.classList.toggle('no-rail'); else side.classList.toggle('open');
  railButton();
}
$('b-rail').addEventListener('click', outline);
$('b-help').addEventListener('click', () => $('help').showModal());
// While something is searched for, `n` and `p` go from match to match, otherwise from prompt to prompt.
const step = by => { if (hits.length) goHit(by); else jump(by); };
const keys = {
  j: () => jump(1), n: () => step(1), k: () => jump(-1), p: () => step(-1), e: () => stepBad(1), E: () => stepBad(-1), o: outline, f: toggleAll, d: theme,
  t: () => { const button = kinds.find(button => button.dataset.k === 'tool'); kind(button, button.getAttribute('aria-pressed') !== 'true'); },
  r: () => rawOf(here ?? hovered),
  '[': () => document.querySelector('.session-links [rel="prev"]')?.click(), ']': () => document.querySelector('.session-links [rel="next"]')?.click(),
  '/': () => { root.classList.remove('no-rail'); q.focus(); q.select(); },
  '?': () => $('help').showModal(),
};
addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input, select, textarea, dialog')) return;
  const act = Object.hasOwn(keys, event.key) && keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// Printing does not scroll, so deferred parts are drawn first, up to a limit on the number of elements.
const PRINTED = 300000;
async function drawAll() {
  let piece;
  while (document.getElementsByTagName('*').length < PRINTED && (piece = main.querySelector('.piece:not(.drawn)'))) {
    await draw(piece);
    if (!piece.classList.contains('drawn')) return;
  }
}
addEventListener('keydown', event => {
  if (event.key !== 'p' || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  if (!main.querySelector('.piece:not(.drawn)')) return;
  event.preventDefault();
  drawAll().then(() => print());
});

// Events from `live.js`, which reports changes of a growing session.
main.addEventListener('changed', event => {
  Object.assign(index, event.detail);
  numberOf = new Map(index.turns.map((anchor, i) => [anchor, i]));
  sections = null;
  current = -1;
  listTools();
  watch(main);
  place();
});
main.addEventListener('redraw', event => { drawing.delete(event.detail); near.unobserve(event.detail); draw(event.detail); });

// Lands on the match that a search over all sessions linked to, with its query in the search box.
async function fromSearch() {
  const asked = index.served && new URLSearchParams(location.search).get('q');
  const id = hashId();
  if (!asked || !id) return fromHash();
  q.value = asked;
  const [, item] = await Promise.all([search(), find(id)]);
  if (!hits.includes(id)) {
    // A match in a sub-agent or in an abandoned branch is not found by the search in this conversation.
    const before = hits.filter(other => order(other) < order(id)).length;
    hits.splice(before, 0, id);
    showHits();
  }
  if (item) await openHit(hits.indexOf(id), 'best');
}

watch(document);
place();
fromSearch();
})();

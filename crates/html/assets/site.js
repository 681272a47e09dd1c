// What every page of the viewer has: light or dark as the reader chose, and a word when the server is not there.
(() => {
'use strict';
const root = document.documentElement;
try {
  const kept = localStorage.getItem('threadline-theme');
  if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;
} catch { /* not kept */ }

// A page that hears of changes says when it does not: what it shows may be old then.
document.addEventListener('hearing', event => {
  let lost = document.getElementById('lost');
  if (!lost) {
    lost = document.createElement('p');
    lost.id = 'lost';
    lost.setAttribute('role', 'status');
    document.body.append(lost);
  }
  lost.hidden = event.detail;
  lost.textContent = event.detail ? '' : 'The server does not answer, and what is new does not appear. If it was started again, open the address that it printed.';
});
})();

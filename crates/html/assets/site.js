// Included in every page of the viewer: applies the stored theme, and reports when the server is unreachable.
(() => {
'use strict';
const root = document.documentElement;
try {
  const kept = localStorage.getItem('threadline-theme');
  if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;
} catch { /* storage is unavailable */ }

// Shows a notice while a page that receives live updates is disconnected, because its content may be stale.
document.addEventListener('hearing', event => {
  let lost = document.getElementById('lost');
  if (!lost) {
    lost = document.createElement('p');
    lost.id = 'lost';
    lost.setAttribute('role', 'status');
    document.body.append(lost);
  }
  lost.hidden = event.detail;
  lost.textContent = event.detail ? '' : 'Server not reachable; this page is not updated. If the server was restarted, open the URL it printed.';
});
})();

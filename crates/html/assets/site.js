// Included in every page of the viewer: applies the stored theme, and reports when the server is unreachable.
(() => {
'use strict';
const root = document.documentElement;
try {
  const stored = localStorage.getItem('threadline-theme');
  if (stored === 'light' || stored === 'dark') root.dataset.theme = stored;
} catch { /* storage is unavailable */ }

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

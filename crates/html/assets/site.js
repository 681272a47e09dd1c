// What every page of the viewer has: light or dark as the reader chose.
(() => {
'use strict';
const root = document.documentElement;
try {
  const kept = localStorage.getItem('threadline-theme');
  if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;
} catch { /* not kept */ }
})();

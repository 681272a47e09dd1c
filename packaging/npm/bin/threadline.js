#!/usr/bin/env node
// Starts the binary of this platform, which is in an optional dependency. Nothing is downloaded here.
'use strict';

const { spawn } = require('node:child_process');

// Whether the system uses musl instead of glibc.
function isMusl() {
  const report = process.report && process.report.getReport();
  return Boolean(report) && !report.header.glibcVersionRuntime;
}

function packageName() {
  const libc = process.platform === 'linux' && isMusl() ? '-musl' : '';
  return `@@OWNER@/threadline-${process.platform}-${process.arch}${libc}`;
}

function findBinary(name) {
  const file = process.platform === 'win32' ? 'threadline.exe' : 'threadline';
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    return null;
  }
}

const name = packageName();
const binary = findBinary(name);
if (binary === null) {
  console.error(`threadline: the package ${name} is not installed.`);
  console.error('It is an optional dependency: install without --omit=optional, on a supported platform.');
  process.exit(1);
}

const child = spawn(binary, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`threadline: cannot start ${binary}: ${error.message}`);
  process.exit(1);
});
// A terminal sends Ctrl-C to the program itself; other signals reach only this process.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) {
  process.on(signal, () => child.kill(signal));
}
child.on('exit', (code, signal) => {
  if (signal !== null) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exitCode = code;
  }
});

// Builds the page into assets/: page.html.gz, and page.policy, the Content-Security-Policy that names the hashes of its script
// and styles. `build.mjs OUT` writes elsewhere. Usually run by scripts/build/page.sh, which installs what it needs.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, '../assets'));
const kMostBytes = 300_000; // compressed: issue 15

process.chdir(here);
await build({ logLevel: 'warn' });
const page = readFileSync(join(here, 'dist/index.html'), 'utf8');

const hashes = (tag) =>
  [...page.matchAll(new RegExp(`<${tag}(?:\\s[^>]*)?>([\\s\\S]*?)</${tag}>`, 'g'))].map(([, text]) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`);
const [scripts, styles] = [hashes('script'), hashes('style')];
if (scripts.length !== 1 || styles.length !== 1) throw new Error(`the page has ${scripts.length} scripts and ${styles.length} styles, not one of each`);
const policy = [
  "default-src 'none'",
  `script-src ${scripts[0]}`,
  `style-src ${styles[0]}`,
  'img-src data:', // its own icon, and pictures of messages: answers get none
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  'trusted-types dompurify',
].join('; ');

const compressed = gzipSync(page, { level: 9 });
if (compressed.length > kMostBytes) throw new Error(`the page has ${compressed.length} bytes compressed, more than ${kMostBytes}`);
mkdirSync(out, { recursive: true });
writeFileSync(join(out, 'page.html.gz'), compressed);
writeFileSync(join(out, 'page.policy'), policy + '\n');
console.log(`page: ${page.length} characters, ${compressed.length} bytes compressed`);

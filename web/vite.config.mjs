// One HTML file with its script and styles inside. Nothing in it depends on the time or the place of the build.
import { defineConfig } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

export default defineConfig({
  base: './',
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: { target: 'es2022', modulePreload: false, reportCompressedSize: false },
  // `npx vite` shows the page while it is written; a gimbal that serves answers it.
  server: { proxy: Object.fromEntries(['/v1', '/metrics', '/health'].map((path) => [path, process.env.GIMBAL_URL ?? 'http://127.0.0.1:8080'])) },
});

// Usage: all.mjs PROGRAM [FOLDER FOR PICTURES]
import { answersOf } from './answers.mjs';
import { branchesOf } from './branches.mjs';
import { chat } from './chat.mjs';
import { foreign } from './foreign.mjs';
import { look } from './look.mjs';
import { models } from './models.mjs';
import { pictures as picturesOf } from './pictures.mjs';
import { browser, failures, serve } from './rig.mjs';
import { safety } from './safety.mjs';
import { shape } from './shape.mjs';
import { short } from './short.mjs';
import { where } from './where.mjs';

const [program, pictures] = process.argv.slice(2);
const server = await serve(program);
try {
  await chat(program, server);
  await answersOf(server);
  await branchesOf(server);
  await models(program);
  await picturesOf(program);
  await where(program, server);
  await look(server, pictures);
  await shape(server);
  await short(program, server);
  await safety(server.url);
  await foreign(program, server);
} finally {
  await browser.close();
  await server.end();
}
console.log(failures() ? `${failures()} failed` : 'all passed');
process.exitCode = failures() ? 1 : 0;

/** Boom where `#boom` is loaded in a plugin's own process; see `imports` in package.json. */
import type Boom from '@hapi/boom';
import { late } from './late.ts';

export default late<typeof Boom>('@hapi/boom');

/** Joi where `#joi` is loaded in a plugin's own process; see `imports` in package.json. */
import type { Root } from 'joi';
import { late } from './late.ts';

export default late<Root>('joi');

/** Sentences in place of Joi's own, where those are no good English. */

/** "1 item", "2 items". */
function counted(noun: string): string {
  return `{if(#limit == 1, "1 ${noun}", #limit + " ${noun}s")}`;
}

export const SENTENCES: Readonly<Record<string, string>> = {
  'array.min': `{{#label}} must contain at least ${counted('item')}`,
  'array.max': `{{#label}} must contain at most ${counted('item')}`,
  'string.min': `{{#label}} must be at least ${counted('character')} long`,
  'string.max': `{{#label}} must be at most ${counted('character')} long`,
};

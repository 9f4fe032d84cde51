/**
 * What plugins write the dashboard's nodes with: `h`, and `html` as a tagged template. Both escape every
 * value.
 */
export { Fragment, h } from 'preact';
export { html } from 'htm/preact';

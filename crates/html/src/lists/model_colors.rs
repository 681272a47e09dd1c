//! The colours of models, which are the same in all charts.

use super::chart::SERIES;

/// Assigns colours to models by a list of all models, so that a model has one colour on every page, whatever
/// the page selects.
#[derive(Clone, Copy)]
pub(super) struct ModelColors<'a>(
    /// All models, the most important first.
    pub(super) &'a [String],
);

impl ModelColors<'_> {
    /// Returns the number of the colour of a model. If there are more models than colours, the last colour is
    /// that of all others.
    pub(super) fn series(self, model: &str) -> usize {
        let last = SERIES.len() - 1;
        self.0.iter().take(last).position(|known| known == model).unwrap_or(last)
    }

    /// Returns whether several models may have the colour of this one.
    pub(super) fn is_shared(self, model: &str) -> bool {
        self.0.len() > SERIES.len() && self.series(model) == SERIES.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colour_is_shared_if_there_are_too_few() {
        let models: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
        let all = ModelColors(&models);
        assert_eq!([all.series("m0"), all.series("m6"), all.series("m7"), all.series("m9")], [0, 6, 7, 7]);
        assert_eq!([all.is_shared("m6"), all.is_shared("m7"), all.is_shared("unknown")], [false, true, true]);
        let few = ModelColors(&models[..8]);
        assert_eq!((few.series("m7"), few.is_shared("m7")), (7, false));
    }
}
